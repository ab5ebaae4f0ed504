//! URLs with the host turned round (`com,example)/path`), so that a sorted index keeps a site's
//! pages together.

use apoidea_model::PageUrl;

/// The key under which an index holds a page. Unlike some other tools this keeps a leading `www`,
/// which is a domain of its own here, and the case of the path.
pub(super) fn surt(url: &PageUrl) -> String {
    let host = url.host();
    let is_name = url.domain().ip().is_none();
    let mut key = if is_name {
        host.rsplit('.').collect::<Vec<_>>().join(",")
    } else {
        host.to_owned()
    };
    let default_port = if url.is_https() { 443 } else { 80 };
    if url.port() != default_port {
        key.push_str(&format!(":{}", url.port()));
    }
    key.push(')');
    key.push_str(url.path_and_query());
    key
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_turned_round_and_addresses_are_not() {
        for (url, key) in [
            ("https://www.example.com/a?b=c", "com,example,www)/a?b=c"),
            ("http://example.com:8080/", "com,example:8080)/"),
            ("http://127.0.0.1/x", "127.0.0.1)/x"),
            ("http://[::1]:81/", "[::1]:81)/"),
        ] {
            assert_eq!(surt(&PageUrl::parse(url).unwrap()), key);
        }
    }
}
