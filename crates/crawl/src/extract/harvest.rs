//! The elements that matter to a crawler and what is taken from them; the same for a byte stream
//! and for a tree.

use super::{
    Extracted, MAX_LANGUAGE_BYTES, MAX_TITLE_CHARS,
    attributes::{Lookup, Wanted},
    base::Base,
    foreign::Namespace,
    name::Name,
    references::References,
    refresh,
};
use crate::Directives;
use apoidea_model::PageUrl;
use std::borrow::Cow;

/// The findings so far.
#[derive(Default)]
pub(super) struct Harvest<'a> {
    references: References<'a>,
    base: Option<Cow<'a, str>>,
    canonical: Option<Cow<'a, str>>,
    title: Option<String>,
    language: Option<Cow<'a, str>>,
    directives: Directives,
}

impl<'a> Harvest<'a> {
    /// Whether an element with this name may say something.
    #[inline]
    pub(super) fn wants(name: Name) -> bool {
        matches!(
            name,
            Name::A | Name::AREA | Name::LINK | Name::META | Name::IFRAME | Name::BASE | Name::HTML
        )
    }

    /// Takes what an element says. Only `<a>` also exists outside of HTML, in drawings.
    pub(super) fn element(&mut self, name: Name, namespace: Namespace, element: &impl Lookup<'a>) {
        match (name, namespace) {
            (Name::A, _) | (Name::AREA, Namespace::Html) => self.anchor(element),
            (Name::LINK, Namespace::Html) => self.link(element),
            (Name::META, Namespace::Html) => self.meta(element),
            (Name::IFRAME, Namespace::Html) => self.frame(element),
            (Name::BASE, Namespace::Html) if self.base.is_none() => {
                self.base = element.value(Wanted::Href)
            }
            (Name::HTML, Namespace::Html) if self.language.is_none() => {
                self.language = element.value(Wanted::Lang)
            }
            _ => {}
        }
    }

    /// Takes the text of a `<title>`.
    pub(super) fn title(&mut self, text: &str) {
        if self.title.is_none() {
            self.title = Some(collapsed(text, MAX_TITLE_CHARS));
        }
    }

    /// Resolves what was found on `page`.
    pub(super) fn finish(self, page: &PageUrl) -> Extracted {
        let base = Base::new(page, self.base.as_deref());
        Extracted {
            links: self.references.resolve(&base),
            title: self.title.filter(|title| !title.is_empty()),
            language: self.language.as_deref().and_then(language),
            canonical: self
                .canonical
                .and_then(|canonical| base.resolve(&canonical)),
            directives: self.directives,
        }
    }

    fn anchor(&mut self, element: &impl Lookup<'a>) {
        let Some(href) = element.value(Wanted::Href) else {
            return;
        };
        if !element
            .value(Wanted::Rel)
            .is_some_and(|rel| has_word(&rel, "nofollow"))
        {
            self.references.add(href);
        }
    }

    fn link(&mut self, element: &impl Lookup<'a>) {
        let (Some(href), Some(rel)) = (element.value(Wanted::Href), element.value(Wanted::Rel))
        else {
            return;
        };
        let is = |word| has_word(&rel, word);
        let leads_to_a_page = is("next") || is("canonical") || is("alternate") && !is("stylesheet");
        if href.is_empty() || !leads_to_a_page || is("nofollow") {
            return;
        }
        if is("canonical") && self.canonical.is_none() {
            self.canonical = Some(href.clone());
        }
        self.references.add(href);
    }

    fn frame(&mut self, element: &impl Lookup<'a>) {
        if let Some(src) = element.value(Wanted::Src).filter(|src| !src.is_empty()) {
            self.references.add(src);
        }
    }

    fn meta(&mut self, element: &impl Lookup<'a>) {
        let Some(content) = element.value(Wanted::Content) else {
            return;
        };
        let name = element.value(Wanted::Name);
        if let Some(directives) = name.and_then(|name| Directives::from_named_meta(&name, &content))
        {
            self.directives = self.directives & directives;
        }
        let refreshes = |equiv: Cow<str>| equiv.eq_ignore_ascii_case("refresh");
        if element.value(Wanted::HttpEquiv).is_some_and(refreshes)
            && let Some(target) = refresh::target(&content)
        {
            self.references.add(Cow::Owned(target.to_owned()));
        }
    }
}

/// A language tag, unless it is none.
fn language(tag: &str) -> Option<String> {
    let tag = tag.trim();
    (!tag.is_empty() && tag.len() <= MAX_LANGUAGE_BYTES).then(|| tag.to_owned())
}

fn has_word(list: &str, word: &str) -> bool {
    list.split_ascii_whitespace()
        .any(|item| item.eq_ignore_ascii_case(word))
}

/// The text with runs of white space as one space and none around, cut after `max_chars`.
fn collapsed(text: &str, max_chars: usize) -> String {
    let mut out = String::new();
    let mut left = max_chars;
    for word in text.split_whitespace() {
        if left == 0 {
            break;
        }
        if !out.is_empty() {
            out.push(' ');
            left -= 1;
        }
        out.extend(word.chars().take(left));
        left = left.saturating_sub(word.chars().count());
    }
    out.truncate(out.trim_end().len());
    out
}
