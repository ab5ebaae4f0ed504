//! Names of elements as numbers, so that telling them apart costs a comparison.

/// The name of an element in lower case, packed into a number. Names of more than 16 bytes, which
/// no element that matters has, are mixed together and might, rarely, be taken for each other.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Name(u128);

impl Name {
    const MAX_BYTES: usize = 16;
    const IS_MIXED: u128 = 1 << 127;

    /// Packs a name in any case.
    pub(super) const fn of(name: &[u8]) -> Self {
        let mut packed: u128 = 0;
        let mut i = 0;
        while i < name.len() {
            packed = packed.rotate_left(8) ^ name[i].to_ascii_lowercase() as u128;
            i += 1;
        }
        if name.len() > Self::MAX_BYTES {
            Name(packed | Self::IS_MIXED)
        } else {
            Name(packed)
        }
    }

    /// The number of values that [`Self::slot`] has.
    pub(super) const SLOTS: usize = 256;

    /// A small number for counting by name; few names share one.
    #[inline]
    pub(super) fn slot(self) -> usize {
        // Fibonacci hashing: the upper bits of a product with 2⁶⁴ / φ depend on all of the lower
        // ones.
        let folded = (self.0 as u64) ^ (self.0 >> 64) as u64;
        (folded.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as usize
    }
}

macro_rules! names {
    ($($constant:ident $name:literal)*) => {
        impl Name { $(pub(super) const $constant: Name = Name::of($name.as_bytes());)* }
    };
}

names! {
    A "a" ABBR "abbr" ACRONYM "acronym" ANNOTATION_XML "annotation-xml" AREA "area" B "b" BASE "base"
    BASEFONT "basefont" BDI "bdi" BDO "bdo" BGSOUND "bgsound" BIG "big" BLOCKQUOTE "blockquote" BODY "body"
    BR "br" CENTER "center" CITE "cite" CODE "code" COL "col" DATA "data" DD "dd" DEL "del" DESC "desc"
    DFN "dfn" DIV "div" DL "dl" DT "dt" EM "em" EMBED "embed" FONT "font" FOREIGN_OBJECT "foreignobject"
    H1 "h1" H2 "h2" H3 "h3" H4 "h4" H5 "h5" H6 "h6" HEAD "head" HR "hr" HTML "html" I "i" IFRAME "iframe"
    IMG "img" INPUT "input" INS "ins" KBD "kbd" LABEL "label" LI "li" LINK "link" LISTING "listing"
    MALIGNMARK "malignmark" MARK "mark" MATH "math" MENU "menu" META "meta" MGLYPH "mglyph" MI "mi" MN "mn"
    MO "mo" MS "ms" MTEXT "mtext" NOBR "nobr" NOEMBED "noembed" NOFRAMES "noframes" NOSCRIPT "noscript"
    OL "ol" P "p" PARAM "param" PLAINTEXT "plaintext" PRE "pre" Q "q" RUBY "ruby" S "s" SAMP "samp"
    SCRIPT "script" SMALL "small" SOURCE "source" SPAN "span" STRIKE "strike" STRONG "strong" STYLE "style"
    SUB "sub" SUP "sup" SVG "svg" TABLE "table" TEMPLATE "template" TEXTAREA "textarea" TIME "time"
    TITLE "title" TRACK "track" TT "tt" U "u" UL "ul" VAR "var" WBR "wbr" XMP "xmp"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn case_does_not_matter_and_every_letter_does() {
        assert!(Name::of(b"IFrame") == Name::IFRAME);
        assert!(Name::of(b"a") != Name::of(b"aa"));
        assert!(Name::of(b"averylongcustom-element") != Name::of(b"averylongcustom-elemens"));
        assert!(Name::of(b"0123456789abcdefscript") != Name::SCRIPT);
    }
}
