//! The same answers by way of a tree, and what only a tree can answer: CSS selectors.
//!
//! Ten times slower than [`super::extract`] and using memory in proportion to the page, but built
//! on a complete HTML parser: the yardstick that the scanner is compared with. A hostile page can
//! make a tree builder take time in proportion to the square of its size, so neither belongs on the
//! hot path.

use super::{
    Extracted,
    attributes::{Lookup, Wanted},
    foreign::Namespace,
    harvest::Harvest,
    is_html,
    name::Name,
    source::Source,
};
use apoidea_model::PageUrl;
use scraper::{ElementRef, Html, Selector};
use std::borrow::Cow;

const SVG: &str = "http://www.w3.org/2000/svg";
const MATH_ML: &str = "http://www.w3.org/1998/Math/MathML";

/// The text is not a CSS selector.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{selector:?} is not a CSS selector: {why}")]
pub struct InvalidSelector {
    selector: String,
    why: String,
}

/// As [`super::extract`].
pub fn extract(page: &PageUrl, content_type: Option<&str>, body: &[u8]) -> Extracted {
    if !is_html(content_type) {
        return Extracted::default();
    }
    let tree = Html::parse_document(&Source::new(content_type, body).whole());
    let mut harvest = Harvest::default();
    for element in tree.root_element().descendent_elements() {
        let (name, namespace) = (
            Name::of(element.value().name().as_bytes()),
            namespace(element),
        );
        harvest.element(name, namespace, &element);
        if name == Name::TITLE && namespace == Namespace::Html {
            harvest.title(&element.text().collect::<String>());
        }
    }
    harvest.finish(page)
}

/// The values of `attribute` of all elements that match a selector, in the order of the document.
pub fn select(
    content_type: Option<&str>,
    body: &[u8],
    selector: &str,
    attribute: &str,
) -> Result<Vec<String>, InvalidSelector> {
    let parsed = Selector::parse(selector).map_err(|error| InvalidSelector {
        selector: selector.to_owned(),
        why: error.to_string(),
    })?;
    let tree = Html::parse_document(&Source::new(content_type, body).whole());
    let values = tree
        .select(&parsed)
        .filter_map(|element| element.attr(attribute));
    Ok(values.map(str::to_owned).collect())
}

fn namespace(element: ElementRef<'_>) -> Namespace {
    match &*element.value().name.ns {
        SVG => Namespace::Svg,
        MATH_ML => Namespace::MathMl,
        _ => Namespace::Html,
    }
}

impl<'a> Lookup<'a> for ElementRef<'a> {
    fn value(&self, wanted: Wanted) -> Option<Cow<'a, str>> {
        self.value().attr(wanted.as_str()).map(Cow::Borrowed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selectors_pick_attributes_in_document_order() {
        let page = b"<div class=x><a href=1></a><a></a></div><a href=2></a><p class=x><a href='3'>";
        assert_eq!(select(None, page, ".x a", "href").unwrap(), ["1", "3"]);
        let error = select(None, page, "a[", "href").unwrap_err().to_string();
        assert!(
            error.starts_with("\"a[\" is not a CSS selector: "),
            "{error}"
        );
    }
}
