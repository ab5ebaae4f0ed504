//! The pages that a site itself lists: sitemaps (sitemaps.org 0.9), their indexes, plain lists, and
//! RSS or Atom feeds.
//!
//! Input is read as a stream, inflated if it is gzip, decoded to UTF-8 with replacement, and never
//! beyond [`Sitemap::MAX_BYTES`]; what is broken gives what was found up to there. A sitemap may
//! name pages of any host: taking only those that its own host may speak for is the caller's
//! business.

use crate::list_date;
use apoidea_model::{PageUrl, Time};
use encoding_rs::{Decoder, UTF_8};
use flate2::bufread::MultiGzDecoder;
use quick_xml::{
    Reader, XmlVersion,
    escape::resolve_xml_entity,
    events::{BytesRef, BytesStart, Event},
    name::QName,
};
use std::io::{self, BufRead, BufReader, Read};

/// The entries of a sitemap.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Sitemap {
    /// Pages, in their order.
    pub pages: Vec<PageUrl>,
    /// Further sitemaps, where this is an index.
    pub sitemaps: Vec<PageUrl>,
    /// Pages with the time of their last change, where it is told.
    pub dated: Vec<(PageUrl, Time)>,
}

/// The kinds of document, by their root element.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Urlset,
    Index,
    Rss,
    Atom,
}

impl Sitemap {
    /// Most bytes that are read, after inflating. The protocol's own limit until 2016; 50,000
    /// entries of an ordinary length fit, while the 50 MiB that are allowed today would be a
    /// volunteer's whole share of memory.
    pub const MAX_BYTES: u64 = 10 * 1024 * 1024;

    /// Most URLs that are taken: what the protocol allows in one file.
    pub const MAX_URLS: usize = 50_000;

    /// Reads whatever form the bytes have; what is none of them lists nothing.
    pub fn parse(bytes: &[u8]) -> Self {
        let is_gzip = bytes.starts_with(b"\x1f\x8b");
        if is_gzip {
            Self::read(MultiGzDecoder::new(bytes))
        } else {
            Self::read(bytes)
        }
    }

    fn read(source: impl Read) -> Self {
        let source = BufReader::new(source.take(Self::MAX_BYTES));
        let mut text = BufReader::new(Decoded {
            source,
            decoder: UTF_8.new_decoder(),
            done: false,
        });
        let mut sitemap = Sitemap::default();
        match skip_space(&mut text) {
            Some(b'<') => Listing::of(&mut sitemap).read_xml(text),
            Some(_) => sitemap.read_lines(text),
            None => {}
        }
        sitemap
    }

    /// The plain form: one URL per line.
    fn read_lines(&mut self, text: impl BufRead) {
        for line in text.lines().map_while(Result::ok) {
            if !self.add(Form::Urlset, line.trim()) {
                return;
            }
        }
    }

    /// Takes a URL, if it is one; false when there is no more room.
    fn add(&mut self, form: Form, url: &str) -> bool {
        let list = if form == Form::Index {
            &mut self.sitemaps
        } else {
            &mut self.pages
        };
        if let Ok(url) = PageUrl::parse(url) {
            list.push(url);
        }
        list.len() < Self::MAX_URLS
    }
}

fn skip_space(text: &mut impl BufRead) -> Option<u8> {
    loop {
        let buffered = text.fill_buf().ok()?;
        if buffered.is_empty() {
            return None;
        }
        let space = buffered
            .iter()
            .take_while(|b| b.is_ascii_whitespace())
            .count();
        let first = buffered.get(space).copied();
        text.consume(space);
        if first.is_some() {
            return first;
        }
    }
}

/// A document being read, element by element.
struct Listing<'s> {
    sitemap: &'s mut Sitemap,
    /// The form, and the prefix that its elements have; `None` before the root.
    form: Option<(Form, Option<String>)>,
    /// The text of the element that holds a URL, while inside it.
    url: Option<String>,
    /// The text of the element that holds a date, while inside it.
    date: Option<String>,
    /// The page and the date of the entry that is being read.
    entry: (Option<PageUrl>, Option<Time>),
}

/// Go on reading?
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    More,
    Enough,
}

impl<'s> Listing<'s> {
    fn of(sitemap: &'s mut Sitemap) -> Self {
        Listing {
            sitemap,
            form: None,
            url: None,
            date: None,
            entry: (None, None),
        }
    }

    fn read_xml(mut self, text: impl BufRead) {
        let mut reader = Reader::from_reader(text);
        let config = reader.config_mut();
        config.check_end_names = false;
        config.allow_unmatched_ends = true;
        config.allow_dangling_amp = true;
        let mut buffer = Vec::new();
        while let Ok(event) = reader.read_event_into(&mut buffer) {
            if self.take(event) == Next::Enough {
                return;
            }
            buffer.clear();
        }
        self.finish_url();
    }

    fn take(&mut self, event: Event<'_>) -> Next {
        match event {
            Event::Start(tag) | Event::Empty(tag) => {
                let next = self.finish_url();
                if next == Next::More {
                    self.open(&tag)
                } else {
                    next
                }
            }
            Event::End(_) => self.finish_url(),
            Event::Text(text) => self.append(&text),
            Event::CData(text) => self.append(&text),
            Event::GeneralRef(entity) => self.append_entity(&entity),
            Event::Eof => {
                self.finish_url();
                Next::Enough
            }
            _ => Next::More,
        }
    }

    fn open(&mut self, tag: &BytesStart<'_>) -> Next {
        let Some((form, prefix)) = &self.form else {
            self.form = Form::of_root(tag.name());
            return if self.form.is_some() {
                Next::More
            } else {
                Next::Enough
            };
        };
        let is_own = prefix_of(tag.name()) == prefix.as_deref();
        if is_own && form.entry_elements().contains(&tag.local_name().as_ref()) {
            self.entry = (None, None);
        }
        if is_own && *form != Form::Index && form.is_date(tag.local_name().as_ref()) {
            self.date = Some(String::new());
            return Next::More;
        }
        if !is_own || tag.local_name().as_ref() != form.url_element() {
            return Next::More;
        }
        if *form == Form::Atom {
            return atom_target(tag).map_or(Next::More, |url| self.add(&url));
        }
        self.url = Some(String::new());
        Next::More
    }

    fn append(&mut self, text: &str) -> Next {
        if let Some(url) = &mut self.url
            && url.len() <= PageUrl::MAX_BYTES
        {
            url.push_str(text);
        }
        if let Some(date) = &mut self.date
            && date.len() <= list_date::MAX_BYTES
        {
            date.push_str(text);
        }
        Next::More
    }

    /// Entities other than XML's own stay as they are written, most often because they are `&` and
    /// a parameter.
    fn append_entity(&mut self, entity: &BytesRef<'_>) -> Next {
        if let Some(known) = resolve_xml_entity(entity) {
            return self.append(known);
        }
        match entity.resolve_char_ref() {
            Ok(Some(c)) => self.append(c.encode_utf8(&mut [0; 4])),
            _ => self.append(&format!("&{};", &**entity)),
        }
    }

    fn finish_url(&mut self) -> Next {
        if let Some(date) = self.date.take() {
            self.entry.1 = self.entry.1.max(list_date::parse(&date));
            self.finish_entry();
        }
        self.url
            .take()
            .map_or(Next::More, |url| self.add(url.trim()))
    }

    /// Takes the date of the entry that is being read, once its page is known, too.
    fn finish_entry(&mut self) {
        if let (Some(url), Some(date)) = &self.entry {
            self.sitemap.dated.push((url.clone(), *date));
            self.entry = (None, None);
        }
    }

    fn add(&mut self, url: &str) -> Next {
        self.entry.0 = PageUrl::parse(url).ok();
        self.finish_entry();
        let form = self.form.as_ref().map_or(Form::Urlset, |(form, _)| *form);
        if self.sitemap.add(form, url) {
            Next::More
        } else {
            Next::Enough
        }
    }
}

impl Form {
    /// The form with this root, and the prefix of the elements that matter: image and video
    /// sitemaps have a `loc` of their own under another one.
    fn of_root(root: QName<'_>) -> Option<(Form, Option<String>)> {
        let prefix = prefix_of(root).map(str::to_owned);
        match root.local_name().as_ref() {
            "urlset" => Some((Form::Urlset, prefix)),
            "sitemapindex" => Some((Form::Index, prefix)),
            "rss" | "RDF" => Some((Form::Rss, None)),
            "feed" => Some((Form::Atom, prefix)),
            _ => None,
        }
    }

    /// The elements that begin an entry.
    fn entry_elements(self) -> &'static [&'static str] {
        match self {
            Form::Urlset => &["url"],
            Form::Index => &["sitemap"],
            Form::Rss => &["item", "channel"],
            Form::Atom => &["entry"],
        }
    }

    /// Whether an element tells the last change of its entry.
    fn is_date(self, name: &str) -> bool {
        match self {
            Form::Urlset | Form::Index => name == "lastmod",
            Form::Rss => name == "pubDate",
            Form::Atom => name == "updated",
        }
    }

    fn url_element(self) -> &'static str {
        match self {
            Form::Urlset | Form::Index => "loc",
            Form::Rss | Form::Atom => "link",
        }
    }
}

fn prefix_of(name: QName<'_>) -> Option<&str> {
    name.0.split_once(':').map(|(prefix, _)| prefix)
}

/// The `href` of an Atom link to a page, as opposed to the feed itself, its editor or an enclosure.
fn atom_target(tag: &BytesStart<'_>) -> Option<String> {
    let value = |name| {
        let attribute = tag.try_get_attribute(name).ok().flatten()?;
        // An `&` that begins no entity means itself.
        Some(
            attribute
                .normalized_value(XmlVersion::Implicit1_0)
                .unwrap_or(attribute.value),
        )
    };
    let is_page = value("rel").is_none_or(|rel| rel == "alternate");
    value("href")
        .filter(|_| is_page)
        .map(|href| href.trim().to_owned())
}

/// A byte stream as UTF-8, or as UTF-16 where a byte-order mark says so; what is neither becomes
/// U+FFFD.
struct Decoded<R> {
    source: R,
    decoder: Decoder,
    done: bool,
}

impl<R: BufRead> Read for Decoded<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        while !self.done {
            let bytes = self.source.fill_buf()?;
            let last = bytes.is_empty();
            let (result, read, written, _) = self.decoder.decode_to_utf8(bytes, out, last);
            self.source.consume(read);
            self.done = last && result == encoding_rs::CoderResult::InputEmpty;
            if written > 0 || result == encoding_rs::CoderResult::OutputFull {
                return Ok(written);
            }
        }
        Ok(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::{Compression, write::GzEncoder};
    use std::io::Write;

    fn texts(urls: &[PageUrl]) -> Vec<&str> {
        urls.iter().map(PageUrl::as_str).collect()
    }

    fn pages(document: &str) -> Vec<String> {
        let sitemap = Sitemap::parse(document.as_bytes());
        assert_eq!(sitemap.sitemaps, []);
        texts(&sitemap.pages)
            .into_iter()
            .map(str::to_owned)
            .collect()
    }

    fn gzip(chunk: &[u8], times: usize) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        for _ in 0..times {
            encoder.write_all(chunk).unwrap();
        }
        encoder.finish().unwrap()
    }

    #[test]
    fn a_urlset_lists_its_own_locations_only() {
        let found = pages(
            r#"<?xml version="1.0" encoding="UTF-8"?>
            <urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9" xmlns:image="http://i.example/">
              <url><loc> http://a.example/1?x=1&amp;y=2 </loc><lastmod>2026-01-01</lastmod></url>
              <url><loc><![CDATA[http://a.example/2]]></loc>
                <image:image><image:loc>http://a.example/picture.jpg</image:loc></image:image></url>
              <url><loc>http://a.example/&#x33;</loc></url>
              <url><loc/></url><url><loc>/relative</loc></url>
            </urlset>"#,
        );
        assert_eq!(
            found,
            [
                "http://a.example/1?x=1&y=2",
                "http://a.example/2",
                "http://a.example/3"
            ]
        );
    }

    #[test]
    fn prefixed_elements_are_found() {
        let document =
            r#"<s:urlset xmlns:s="x"><s:url><s:loc>http://a.example/1</s:loc></s:url></s:urlset>"#;
        assert_eq!(pages(document), ["http://a.example/1"]);
    }

    #[test]
    fn an_index_lists_sitemaps() {
        let index = b"\xef\xbb\xbf\n<sitemapindex><sitemap><loc>http://a.example/s.xml.gz</loc></sitemap></sitemapindex>";
        let sitemap = Sitemap::parse(index);
        assert_eq!(texts(&sitemap.sitemaps), ["http://a.example/s.xml.gz"]);
        assert_eq!(sitemap.pages, []);
    }

    #[test]
    fn plain_lists_and_feeds_are_sitemaps_too() {
        assert_eq!(
            pages("http://a.example/1\r\n\n# no URL\n  http://a.example/2"),
            ["http://a.example/1", "http://a.example/2"]
        );
        let rss = r#"<rss><channel><atom:link href="http://a.example/feed" rel="self"/>
            <item><link>http://a.example/1</link><guid>x</guid></item></channel></rss>"#;
        assert_eq!(pages(rss), ["http://a.example/1"]);
        let rdf =
            r#"<rdf:RDF><item rdf:about="x"><link>http://a.example/1</link></item></rdf:RDF>"#;
        assert_eq!(pages(rdf), ["http://a.example/1"]);
        let atom = r#"<feed xmlns="http://www.w3.org/2005/Atom"><link rel="self" href="http://a.example/feed"/>
            <entry><link href="http://a.example/1?a&amp;b"/><link rel="alternate" href="http://a.example/2?a=1&b"/>
            <link rel="enclosure" href="http://a.example/3.mp3"/></entry></feed>"#;
        assert_eq!(
            pages(atom),
            ["http://a.example/1?a&b", "http://a.example/2?a=1&b"]
        );
    }

    #[test]
    fn other_documents_list_nothing() {
        for document in [
            "",
            " \n",
            "<html><body><link href='http://a.example/'><loc>http://a.example/</loc>",
            "PK\u{3}\u{4}",
        ] {
            assert_eq!(
                Sitemap::parse(document.as_bytes()),
                Sitemap::default(),
                "{document}"
            );
        }
    }

    #[test]
    fn what_comes_before_the_damage_is_kept() {
        let good = "<urlset><url><loc>http://a.example/1</loc></url>";
        for damage in [
            "<url><loc",
            "<!-- ",
            "<url attr='",
            "<![CDATA[",
            "</urlset></urlset></x>",
            "&",
            "<!x>",
        ] {
            assert_eq!(
                pages(&format!("{good}{damage}")),
                ["http://a.example/1"],
                "{damage}"
            );
        }
        assert_eq!(
            pages("<urlset><url><loc>http://a.example/1?a=1&b=2</url>"),
            ["http://a.example/1?a=1&b=2"]
        );
        assert_eq!(
            pages("<urlset><loc>http://a.example/1<loc>http://a.example/2").len(),
            2
        );
        let mut packed = gzip(good.as_bytes(), 200);
        packed.truncate(packed.len() - 12);
        assert!(!Sitemap::parse(&packed).pages.is_empty());
    }

    #[test]
    fn bytes_in_another_encoding_do_not_end_the_list() {
        let latin =
            b"<urlset><title>caf\xe9</title><url><loc>http://a.example/1</loc></url></urlset>";
        assert_eq!(texts(&Sitemap::parse(latin).pages), ["http://a.example/1"]);
        let wide =
            "\u{feff}<urlset><url><loc>http://a.example/1</loc></url></urlset>".encode_utf16();
        let wide: Vec<u8> = wide.flat_map(u16::to_le_bytes).collect();
        assert_eq!(texts(&Sitemap::parse(&wide).pages), ["http://a.example/1"]);
    }

    #[test]
    fn compressed_input_is_inflated_up_to_the_limit() {
        let packed = gzip(
            b"<urlset><url><loc>http://a.example/1</loc></url></urlset>",
            1,
        );
        assert_eq!(
            texts(&Sitemap::parse(&packed).pages),
            ["http://a.example/1"]
        );
        let mib = vec![b' '; 1024 * 1024];
        let limit = usize::try_from(Sitemap::MAX_BYTES).unwrap() / mib.len();
        let mut bomb = gzip(&mib, limit);
        bomb.extend(gzip(b"http://a.example/beyond", 1));
        assert_eq!(Sitemap::parse(&bomb), Sitemap::default());
        let mut long = gzip(&mib, limit - 1);
        long.extend(gzip(b"http://a.example/within", 1));
        assert_eq!(
            texts(&Sitemap::parse(&long).pages),
            ["http://a.example/within"]
        );
    }

    #[test]
    fn the_number_of_urls_is_bounded() {
        let entry = "<url><loc>http://a.example/1</loc></url>";
        let document = format!("<urlset>{}", entry.repeat(Sitemap::MAX_URLS + 5));
        assert_eq!(pages(&document).len(), Sitemap::MAX_URLS);
        assert_eq!(
            pages(&"http://a.example/1\n".repeat(Sitemap::MAX_URLS + 5)).len(),
            Sitemap::MAX_URLS
        );
    }

    #[test]
    fn entities_cannot_grow() {
        let bomb = r#"<!DOCTYPE x [<!ENTITY a "http://a.example/"><!ENTITY b "&a;&a;">]><urlset><loc>&b;</loc></urlset>"#;
        assert_eq!(pages(bomb), Vec::<String>::new());
    }

    #[test]
    fn the_time_of_the_last_change_is_read_in_either_order() {
        let dated = |text: &str| -> Vec<(String, u64)> {
            let dated = Sitemap::parse(text.as_bytes()).dated.into_iter();
            dated
                .map(|(url, time)| (url.to_string(), time.as_millis() / 1000))
                .collect()
        };
        let page = |path: &str, seconds: u64| (format!("http://a.test/{path}"), seconds);
        let sitemap = "<urlset><url><loc>http://a.test/1</loc><lastmod>1970-01-02</lastmod></url>\
            <url><loc>http://a.test/2</loc></url>\
            <url><lastmod>1970-01-03</lastmod><loc>http://a.test/3</loc></url></urlset>";
        assert_eq!(dated(sitemap), [page("1", 86_400), page("3", 172_800)]);
        let rss = "<rss><channel><link>http://a.test/</link><pubDate>x</pubDate>\
            <item><link>http://a.test/1</link><pubDate>Fri, 02 Jan 1970 00:00:00 GMT</pubDate></item>\
            </channel></rss>";
        assert_eq!(dated(rss), [page("1", 86_400)]);
        let atom = "<feed><updated>1970-01-09T00:00:00Z</updated>\
            <entry><updated>1970-01-02T00:00:00Z</updated><link href='http://a.test/1'/></entry></feed>";
        assert_eq!(dated(atom), [page("1", 86_400)]);
        let index = "<sitemapindex><sitemap><loc>http://a.test/s</loc>\
            <lastmod>1970-01-02</lastmod></sitemap></sitemapindex>";
        assert_eq!(dated(index), []);
    }
}
