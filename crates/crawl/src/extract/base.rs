//! The base that a page's references are relative to, and the pages they lead to.

use apoidea_model::PageUrl;
use url::Url;

/// The base of a page's references.
pub(super) struct Base {
    url: Url,
    /// The same as a page, if it could be one.
    page: Option<PageUrl>,
}

impl Base {
    /// The page itself, or what its `<base href>` says (WHATWG HTML §4.2.3, "set the frozen base
    /// URL").
    pub(super) fn new(page: &PageUrl, href: Option<&str>) -> Self {
        let url = page.to_url();
        let declared = href.and_then(|href| url.join(href).ok());
        match declared.filter(|url| !matches!(url.scheme(), "data" | "javascript")) {
            Some(url) => Base {
                page: PageUrl::from_url(url.clone()).ok(),
                url,
            },
            None => Base {
                url,
                page: Some(page.clone()),
            },
        }
    }

    /// The page that a reference leads to; `None` if it is not one that could be crawled.
    pub(super) fn resolve(&self, reference: &str) -> Option<PageUrl> {
        let at_sight = self
            .page
            .as_ref()
            .and_then(|page| page.join_plain(reference));
        at_sight.or_else(|| PageUrl::from_url(self.url.join(reference).ok()?).ok())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_declared_base_counts_as_far_as_it_leads_to_pages() {
        let page = PageUrl::parse("https://a.example/b/c").unwrap();
        let resolved = |href: &str, reference: &str| {
            let url = Base::new(&page, Some(href)).resolve(reference)?;
            Some(url.to_string())
        };
        let expected = |url: &str| Some(url.to_owned());
        assert_eq!(
            resolved("../d/./e?f/g", "x"),
            expected("https://a.example/d/x")
        );
        assert_eq!(
            resolved("//h.example:80/%7ei/", "../x?y"),
            expected("https://h.example:80/x?y")
        );
        assert_eq!(
            resolved("//h.example:443/%7ei/", "x"),
            expected("https://h.example/~i/x")
        );
        assert_eq!(
            resolved("data:text/html,", "x"),
            expected("https://a.example/b/x")
        );
        assert_eq!(resolved("ftp://h.example/", "x"), None);
        assert_eq!(resolved("https://user@h.example/", "x"), None);
        assert_eq!(resolved("ftp://h.example/", "//h.example/x"), None);
        assert_eq!(
            resolved("ftp://h.example/", "http://h.example/x"),
            expected("http://h.example/x")
        );
    }
}
