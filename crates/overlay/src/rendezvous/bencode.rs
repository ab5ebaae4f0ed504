//! Bencode, the encoding of BitTorrent's messages, as far as a client of its DHT needs it.
//!
//! The bytes come from strangers. A value borrows from them, so it is never larger than the datagram
//! that it was in, and its depth is bounded.

/// Levels of lists and dictionaries; a DHT answer has three.
const MAX_DEPTH: usize = 6;

/// A value of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Value<'a> {
    Integer(i64),
    Bytes(&'a [u8]),
    List(Vec<Value<'a>>),
    Dictionary(Vec<(&'a [u8], Value<'a>)>),
}

impl<'a> Value<'a> {
    /// Reads a message; what follows its value is ignored, as by others.
    pub fn read(bytes: &'a [u8]) -> Option<Self> {
        value(bytes, MAX_DEPTH).map(|(value, _)| value)
    }

    /// The value at a key of a dictionary.
    pub fn get(&self, key: &str) -> Option<&Value<'a>> {
        let Value::Dictionary(entries) = self else {
            return None;
        };
        let found = entries.iter().find(|(name, _)| *name == key.as_bytes());
        found.map(|(_, value)| value)
    }

    /// The bytes, if it is a text.
    pub fn bytes(&self) -> Option<&'a [u8]> {
        match self {
            Value::Bytes(bytes) => Some(bytes),
            _ => None,
        }
    }

    /// The items, if it is a list.
    pub fn items(&self) -> &[Value<'a>] {
        match self {
            Value::List(items) => items,
            _ => &[],
        }
    }
}

/// Appends a text.
pub(super) fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend_from_slice(bytes.len().to_string().as_bytes());
    out.push(b':');
    out.extend_from_slice(bytes);
}

/// A value and the bytes behind it.
fn value(bytes: &[u8], depth: usize) -> Option<(Value<'_>, &[u8])> {
    let (&first, rest) = bytes.split_first()?;
    match first {
        b'i' => {
            let (digits, rest) = until(rest, b'e')?;
            let number = std::str::from_utf8(digits).ok()?.parse().ok()?;
            Some((Value::Integer(number), rest))
        }
        b'0'..=b'9' => text(bytes).map(|(text, rest)| (Value::Bytes(text), rest)),
        b'l' | b'd' if depth == 0 => None,
        b'l' => {
            let (mut items, mut rest) = (Vec::new(), rest);
            while rest.first()? != &b'e' {
                let (item, behind) = value(rest, depth - 1)?;
                items.push(item);
                rest = behind;
            }
            Some((Value::List(items), &rest[1..]))
        }
        b'd' => {
            let (mut entries, mut rest) = (Vec::new(), rest);
            while rest.first()? != &b'e' {
                let (key, behind) = text(rest)?;
                let (entry, behind) = value(behind, depth - 1)?;
                entries.push((key, entry));
                rest = behind;
            }
            Some((Value::Dictionary(entries), &rest[1..]))
        }
        _ => None,
    }
}

fn text(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (digits, rest) = until(bytes, b':')?;
    let length: usize = std::str::from_utf8(digits).ok()?.parse().ok()?;
    rest.split_at_checked(length)
}

fn until(bytes: &[u8], end: u8) -> Option<(&[u8], &[u8])> {
    let at = bytes.iter().position(|byte| *byte == end)?;
    Some((&bytes[..at], &bytes[at + 1..]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_message_is_read() {
        let read = Value::read(b"d1:ai-7e1:bl2:xy0:e1:cd1:dle1:y1:ree").unwrap();
        assert_eq!(read.get("a"), Some(&Value::Integer(-7)));
        let items = read.get("b").unwrap().items();
        assert_eq!(items, [Value::Bytes(b"xy"), Value::Bytes(b"")]);
        let inner = read.get("c").unwrap();
        assert_eq!(inner.get("y").and_then(Value::bytes), Some(&b"r"[..]));
        assert_eq!(read.get("z"), None);
    }

    #[test]
    fn what_is_broken_or_too_deep_is_refused() {
        for broken in [
            "",
            "i",
            "i7",
            "ie",
            "5:abc",
            "99999999999999999999:a",
            "l",
            "d1:a",
            "x",
            "-1:",
        ] {
            assert_eq!(Value::read(broken.as_bytes()), None, "{broken}");
        }
        let deep = [vec![b'l'; 100_000], vec![b'e'; 100_000]].concat();
        assert_eq!(Value::read(&deep), None);
    }

    proptest! {
        #[test]
        fn strangers_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let _ = Value::read(&bytes);
        }

        #[test]
        fn strangers_almost_messages_never_panic(text in "[dlie0-9:ax]{0,80}") {
            let _ = Value::read(text.as_bytes());
        }
    }
}
