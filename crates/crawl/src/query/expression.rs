//! Questions about a page, put together by `and`, `or` and `not`.

use super::{Atom, Facts, Truth};
use serde::{Deserialize, Serialize};
use std::fmt;

/// Deepest nesting of parentheses and negations, so that neither parsing nor asking can use up the
/// stack.
pub const MAX_NESTING: usize = 32;

/// Selects pages. Its text is its only spelling outside of the program, so that a stranger's is
/// parsed, with all limits, before it is one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Expression(pub(super) Node);

/// A tree in its one form: a conjunction has at least two parts and none of them is a conjunction,
/// and the same of disjunctions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Node {
    /// `all` pages.
    All,
    /// `none` of the pages.
    None,
    Atom(Atom),
    Not(Box<Node>),
    And(Vec<Node>),
    Or(Vec<Node>),
}

impl Expression {
    /// Selects every page.
    pub const ALL: Expression = Expression(Node::All);

    /// The answer for a page, as far as it is known.
    pub fn ask(&self, facts: &Facts<'_>) -> Truth {
        self.0.ask(facts)
    }

    /// Whether the visible text of a page is looked at, which costs a pass over the page.
    pub fn reads_text(&self) -> bool {
        self.0.any_atom(&Atom::reads_text)
    }
}

impl Default for Expression {
    fn default() -> Self {
        Self::ALL
    }
}

impl From<Atom> for Expression {
    fn from(atom: Atom) -> Self {
        Expression(Node::Atom(atom))
    }
}

impl Node {
    /// All of them, in one form.
    pub(super) fn and(parts: Vec<Node>) -> Node {
        let flat = parts.into_iter().flat_map(|part| match part {
            Node::And(parts) => parts,
            part => vec![part],
        });
        Self::one_or(flat.collect(), Node::And)
    }

    /// Any of them, in one form.
    pub(super) fn or(parts: Vec<Node>) -> Node {
        let flat = parts.into_iter().flat_map(|part| match part {
            Node::Or(parts) => parts,
            part => vec![part],
        });
        Self::one_or(flat.collect(), Node::Or)
    }

    fn one_or(mut parts: Vec<Node>, many: fn(Vec<Node>) -> Node) -> Node {
        match parts.pop() {
            Some(only) if parts.is_empty() => only,
            Some(last) => {
                parts.push(last);
                many(parts)
            }
            None => Node::All,
        }
    }

    fn ask(&self, facts: &Facts<'_>) -> Truth {
        match self {
            Node::All => Truth::Yes,
            Node::None => Truth::No,
            Node::Atom(atom) => atom.ask(facts),
            Node::Not(part) => part.ask(facts).negated(),
            Node::And(parts) => parts.iter().fold(Truth::Yes, |answer, part| match answer {
                Truth::No => Truth::No,
                answer => answer.and(part.ask(facts)),
            }),
            Node::Or(parts) => parts.iter().fold(Truth::No, |answer, part| match answer {
                Truth::Yes => Truth::Yes,
                answer => answer.or(part.ask(facts)),
            }),
        }
    }

    fn any_atom(&self, is_so: &dyn Fn(&Atom) -> bool) -> bool {
        match self {
            Node::All | Node::None => false,
            Node::Atom(atom) => is_so(atom),
            Node::Not(part) => part.any_atom(is_so),
            Node::And(parts) | Node::Or(parts) => parts.iter().any(|part| part.any_atom(is_so)),
        }
    }

    /// Prints the node; in parentheses if it binds less than what is around it.
    fn print(&self, f: &mut fmt::Formatter<'_>, around: Binding) -> fmt::Result {
        let own = match self {
            Node::Or(_) => Binding::Or,
            Node::And(_) => Binding::And,
            _ => Binding::Not,
        };
        if own < around {
            f.write_str("(")?;
        }
        match self {
            Node::All => f.write_str("all")?,
            Node::None => f.write_str("none")?,
            Node::Atom(atom) => write!(f, "{atom}")?,
            Node::Not(part) => {
                f.write_str("not ")?;
                part.print(f, Binding::Not)?;
            }
            Node::And(parts) => print_list(parts, " and ", Binding::And, f)?,
            Node::Or(parts) => print_list(parts, " or ", Binding::Or, f)?,
        }
        if own < around {
            f.write_str(")")?;
        }
        Ok(())
    }
}

/// The strength of a word's hold on what stands beside it, the weakest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Binding {
    Or,
    And,
    Not,
}

fn print_list(
    parts: &[Node],
    word: &str,
    around: Binding,
    f: &mut fmt::Formatter<'_>,
) -> fmt::Result {
    for (index, part) in parts.iter().enumerate() {
        if index > 0 {
            f.write_str(word)?;
        }
        part.print(f, around)?;
    }
    Ok(())
}

impl fmt::Display for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.print(f, Binding::Or)
    }
}

impl From<Expression> for String {
    fn from(expression: Expression) -> String {
        expression.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::query::{Comparison, MediaKind, PageFacts, Part, Via};
    use apoidea_model::PageUrl;
    use proptest::prelude::*;

    fn url(text: &str) -> PageUrl {
        PageUrl::parse(text).unwrap()
    }

    fn ask(expression: &str, facts: &Facts<'_>) -> Truth {
        let expression: Expression = expression.parse().unwrap();
        expression.ask(facts)
    }

    #[test]
    fn facts_of_the_url_are_known_before_the_fetch() {
        let page = url("https://www.example.co.uk/docs/A%20b.html?x=1&y=2");
        let facts = Facts::of_url(&page);
        for (expression, answer) in [
            ("host under example.co.uk", Truth::Yes),
            ("host under ample.co.uk", Truth::No),
            ("host = example.co.uk", Truth::No),
            ("site = example.co.uk", Truth::Yes),
            ("path under /docs", Truth::Yes),
            ("path under /docs/", Truth::Yes),
            ("path under /doc", Truth::No),
            ("path starts /doc", Truth::Yes),
            ("path under /", Truth::Yes),
            ("path ends .html", Truth::Yes),
            ("path contains 'a B'", Truth::Yes),
            ("query = \"x=1&y=2\"", Truth::Yes),
            ("parameters >= 2 and parameters < 3", Truth::Yes),
            ("scheme = https", Truth::Yes),
            ("url contains EXAMPLE", Truth::Yes),
            ("depth < 3", Truth::Unknown),
            ("lang = de", Truth::Unknown),
            ("lang = de and host = a.example", Truth::No),
            ("lang = de or scheme = https", Truth::Yes),
            ("not (type = html)", Truth::Unknown),
            ("from same site", Truth::Unknown),
            ("text contains x", Truth::Unknown),
        ] {
            assert_eq!(ask(expression, &facts), answer, "{expression}");
        }
    }

    #[test]
    fn facts_of_the_page_are_known_after_it() {
        let page = url("http://www.a.example/");
        let (near, far) = (url("http://b.a.example/"), url("http://c.example/"));
        let mut facts = Facts {
            url: &page,
            depth: Some(2),
            via: Via::Link(&near),
            page: Some(PageFacts {
                media_type: Some("application/rss+xml"),
                language: Some("de_AT"),
                title: None,
                text: Some("Die GROSSE Welt"),
            }),
        };
        for (expression, answer) in [
            ("lang = de", Truth::Yes),
            ("lang = de-at", Truth::Yes),
            ("lang = deu", Truth::No),
            ("type = xml", Truth::Yes),
            ("type = html or type = text", Truth::No),
            ("type = application/rss+xml", Truth::Yes),
            ("title = \"\"", Truth::Yes),
            ("text contains 'große'", Truth::No),
            ("text contains 'grosse welt'", Truth::Yes),
            ("depth = 2", Truth::Yes),
            ("from same site", Truth::Yes),
            ("from same host", Truth::No),
        ] {
            assert_eq!(ask(expression, &facts), answer, "{expression}");
        }
        facts.via = Via::Link(&far);
        assert_eq!(ask("from same site", &facts), Truth::No);
        facts.via = Via::Seed;
        assert_eq!(ask("from same site", &facts), Truth::Yes);
        facts.page = Some(PageFacts::default());
        assert_eq!(ask("lang = de or type = html", &facts), Truth::No);
    }

    #[test]
    fn only_the_text_costs_a_pass() {
        let reads = |text: &str| text.parse::<Expression>().unwrap().reads_text();
        assert!(reads("host = a.example or not (text contains x)"));
        assert!(!reads("title contains x and path contains x"));
    }

    fn atom() -> impl Strategy<Value = Atom> {
        let part = prop_oneof![
            Just(Part::Url),
            Just(Part::Path),
            Just(Part::Query),
            Just(Part::Title),
        ];
        let comparison = prop_oneof![
            Just(Comparison::Less),
            Just(Comparison::AtMost),
            Just(Comparison::Equal),
            Just(Comparison::AtLeast),
            Just(Comparison::More),
        ];
        let name = prop_oneof![Just("a.example"), Just("example"), Just("b.a.example")];
        prop_oneof![
            name.clone()
                .prop_map(|name| Atom::HostUnder(name.parse().unwrap())),
            name.prop_map(|name| Atom::Host(name.parse().unwrap())),
            Just(Atom::Https),
            Just(Atom::Http),
            Just(Atom::FromSameSite),
            Just(Atom::FromSameHost),
            (part.clone(), "[a-z \"\\\\'()=<>!&|]{0,4}").prop_map(|(part, text)| {
                let text = text.replace(' ', "%20");
                let text = if part == Part::Path {
                    format!("/{text}")
                } else {
                    text
                };
                Atom::Equals(part, text)
            }),
            (part, "[a-z]{1,2}").prop_map(|(part, text)| Atom::Contains(part, text)),
            "[a-zäß \"\\\\]{1,4}".prop_map(|text| Atom::Contains(Part::Text, text)),
            (comparison.clone(), 0..5u32).prop_map(|(sign, number)| Atom::Depth(sign, number)),
            (comparison, 0..5u32).prop_map(|(sign, number)| Atom::Parameters(sign, number)),
            Just(Atom::Language("de".to_owned())),
            Just(Atom::Type(MediaKind::Html)),
            Just(Atom::Type(MediaKind::Family("image"))),
            Just(Atom::Type(MediaKind::Exact("text/css".to_owned()))),
        ]
    }

    fn node() -> impl Strategy<Value = Node> {
        let leaf = prop_oneof![
            8 => atom().prop_map(Node::Atom),
            1 => Just(Node::All),
            1 => Just(Node::None),
        ];
        leaf.prop_recursive(5, 24, 4, |part| {
            prop_oneof![
                part.clone().prop_map(|part| Node::Not(Box::new(part))),
                prop::collection::vec(part.clone(), 2..4).prop_map(Node::and),
                prop::collection::vec(part, 2..4).prop_map(Node::or),
            ]
        })
    }

    proptest! {
        #[test]
        fn whatever_is_printed_is_read_back(node in node()) {
            let expression = Expression(node);
            let text = expression.to_string();
            prop_assert_eq!(text.parse::<Expression>(), Ok(expression), "{}", text);
        }

        #[test]
        fn no_text_is_too_strange(text in "(host|not|and|or|all|[()=<>!\"' a-z/.\\\\é])*") {
            if let Ok(expression) = text.parse::<Expression>() {
                prop_assert_eq!(expression.to_string().parse(), Ok(expression));
            }
        }

        #[test]
        fn an_answer_stays_when_more_becomes_known(
            node in node(),
            (is_german, is_html, depth, is_near) in any::<(bool, bool, u16, bool)>(),
        ) {
            let page = url("https://b.a.example/x?y=z");
            let from = url(if is_near { "http://a.example/" } else { "http://c.example/" });
            let expression = Expression(node);
            let fetched = PageFacts {
                media_type: is_html.then_some("text/html"),
                language: is_german.then_some("de"),
                title: Some("ab"),
                text: Some("a b ä"),
            };
            let all = Facts {
                url: &page,
                depth: Some(depth % 6),
                via: Via::Link(&from),
                page: Some(fetched),
            };
            let answer = expression.ask(&all);
            prop_assert_ne!(answer, Truth::Unknown, "everything is known");
            for fewer in [
                Facts::of_url(&page),
                Facts { page: None, ..all },
                Facts { depth: None, ..all },
                Facts { page: Some(PageFacts { text: None, ..fetched }), ..all },
            ] {
                let earlier = expression.ask(&fewer);
                prop_assert!(earlier == Truth::Unknown || earlier == answer, "{}", expression);
            }
        }
    }
}
