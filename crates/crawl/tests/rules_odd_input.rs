//! Whatever strangers send, the readers of the web's rules neither panic nor give more than they
//! promise.

use apoidea_crawl::{MAX_RETRY_AFTER, Refusals, Sitemap, Trap, retry_after, without_session};
use apoidea_model::{PageUrl, Time};
use proptest::prelude::*;

/// Pieces of XML in any order, well-formed by accident only.
fn markup() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        "</?(urlset|sitemapindex|rss|feed|url|loc|link|image:loc)( href='?\"?http://a/[a-z&;]{0,3}[\"']?)?/?>?",
        "<!?(--|\\[CDATA\\[|DOCTYPE|\\?xml)?",
        "(--|\\]\\]|\\?)?>",
        "&(amp|#x?[0-9a-f]{0,8}|[a-z]{0,3})?;?",
        "http://a.example/[a-z]{0,4}",
        "\\PC{0,4}",
    ];
    prop::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn no_markup_is_too_odd_for_a_sitemap(root in "(<urlset>|<sitemapindex>|<feed>|<rss>)?", rest in markup()) {
        let document = root.clone() + &rest;
        let sitemap = Sitemap::parse(document.as_bytes());
        prop_assert!(sitemap.pages.len() + sitemap.sitemaps.len() <= document.matches("http").count());
        prop_assert!(sitemap.sitemaps.is_empty() || document.contains("<sitemapindex"));
    }

    #[test]
    fn no_bytes_are_too_odd_for_a_sitemap(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = Sitemap::parse(&bytes);
        let _ = Sitemap::parse(&[b"\x1f\x8b\x08\x00", &bytes[..]].concat());
        let _ = Sitemap::parse(&[b"\xff\xfe<\x00", &bytes[..]].concat());
    }

    #[test]
    fn no_url_is_too_odd_to_be_checked(
        rest in "(/|;|=|&|\\?|-|\\(S\\(|\\)\\)|[0-9]{1,4}|jsessionid|sid|year|month|events|é|%[0-9a-f]{2}|\\PC){0,40}",
        now in any::<u64>(),
    ) {
        let Ok(url) = PageUrl::parse(&format!("http://a.example/{rest}")) else { return Ok(()) };
        let trap = Trap::check(&url, Time::from_millis(now));
        let without = without_session(&url);
        prop_assert!(trap != Err(Trap::Session) || without.is_some());
        prop_assert!(without.is_none_or(|without| without.origin() == url.origin() && without != url));
    }

    #[test]
    fn no_header_is_too_odd_to_be_read(value in "([0-9]{0,30}|[A-Za-z, :0-9-]{0,40}|\\PC{0,20})", now in any::<u64>()) {
        prop_assert!(retry_after(&value, Time::from_millis(now)) <= Some(MAX_RETRY_AFTER));
    }

    #[test]
    fn no_list_is_too_odd_to_be_refused(text in "([*.#a-c\n ]|0\\.0\\.0\\.0|\\PC){0,60}") {
        let mut refusals = Refusals::default();
        match refusals.add("list", &text) {
            Ok(()) => prop_assert!(refusals.len() <= text.lines().count()),
            Err(error) => prop_assert!(refusals.is_empty() && error.to_string().contains("line")),
        }
    }
}
