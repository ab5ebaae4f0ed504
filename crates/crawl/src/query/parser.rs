//! Text to expressions. An error says at which column, what is wrong, and what would be right.

use super::{
    Atom, Comparison, Expression, MAX_NESTING, MediaKind, Part,
    atom::{FAMILIES, SHORT_TYPES},
    expression::Node,
    syntax::quoted,
    token::{Placed, Token, tokens},
};
use apoidea_model::Domain;
use std::{fmt, str::FromStr};

/// Longest text of an expression. The longest that people write have some hundred characters.
pub const MAX_EXPRESSION_BYTES: usize = 4096;
/// Most questions in one expression: each costs a comparison for each link of each page.
pub const MAX_ATOMS: usize = 128;

const FIELDS: [&str; 13] = [
    "host",
    "site",
    "path",
    "query",
    "parameters",
    "scheme",
    "url",
    "depth",
    "lang",
    "type",
    "title",
    "text",
    "from same site",
];

/// The text is not an expression.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvalidExpression {
    /// The column of the first character that is wrong, from 1.
    pub column: usize,
    /// What is wrong there, and what would be right.
    pub why: String,
}

impl InvalidExpression {
    pub(super) fn at(column: usize, why: String) -> Self {
        InvalidExpression { column, why }
    }
}

impl fmt::Display for InvalidExpression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "column {}: {}", self.column, self.why)
    }
}

impl std::error::Error for InvalidExpression {}

impl FromStr for Expression {
    type Err = InvalidExpression;

    fn from_str(text: &str) -> Result<Self, InvalidExpression> {
        if text.len() > MAX_EXPRESSION_BYTES {
            let why = format!(
                "the expression is {} bytes long; at most {MAX_EXPRESSION_BYTES} are taken",
                text.len()
            );
            return Err(InvalidExpression::at(1, why));
        }
        let mut parser = Parser {
            tokens: tokens(text)?,
            next: 0,
            end: text.chars().count() + 1,
            atoms: 0,
        };
        let node = parser.either(0)?;
        match parser.tokens.get(parser.next) {
            None => Ok(Expression(node)),
            Some(Placed { column, token }) => {
                let why = match token {
                    Token::Close => "this parenthesis was never opened".to_owned(),
                    token => format!("{} here; expected and, or, or the end", named(token)),
                };
                Err(InvalidExpression::at(*column, why))
            }
        }
    }
}

impl TryFrom<String> for Expression {
    type Error = InvalidExpression;

    fn try_from(text: String) -> Result<Self, InvalidExpression> {
        text.parse()
    }
}

struct Parser {
    tokens: Vec<Placed>,
    next: usize,
    /// The column behind the text.
    end: usize,
    atoms: usize,
}

impl Parser {
    fn either(&mut self, nesting: usize) -> Result<Node, InvalidExpression> {
        let mut parts = vec![self.both(nesting)?];
        while self.takes_word("or") {
            parts.push(self.both(nesting)?);
        }
        Ok(Node::or(parts))
    }

    fn both(&mut self, nesting: usize) -> Result<Node, InvalidExpression> {
        let mut parts = vec![self.one(nesting)?];
        while self.takes_word("and") {
            parts.push(self.one(nesting)?);
        }
        Ok(Node::and(parts))
    }

    fn one(&mut self, nesting: usize) -> Result<Node, InvalidExpression> {
        let column = self.column();
        if nesting > MAX_NESTING {
            let why = format!("nested more than {MAX_NESTING} times; leave out some parentheses");
            return Err(InvalidExpression::at(column, why));
        }
        if self.takes_word("not") {
            return Ok(Node::Not(Box::new(self.one(nesting + 1)?)));
        }
        if self.takes(&Token::Open) {
            let node = self.either(nesting + 1)?;
            if !self.takes(&Token::Close) {
                let why = format!(
                    "expected and, or, or the parenthesis that closes the one at column {column}"
                );
                return Err(InvalidExpression::at(self.column(), why));
            }
            return Ok(node);
        }
        if self.takes_word("all") {
            return Ok(Node::All);
        }
        if self.takes_word("none") {
            return Ok(Node::None);
        }
        self.atoms += 1;
        if self.atoms > MAX_ATOMS {
            let why =
                format!("more than {MAX_ATOMS} conditions; an expression has at most as many");
            return Err(InvalidExpression::at(column, why));
        }
        self.atom()
    }

    fn atom(&mut self) -> Result<Node, InvalidExpression> {
        let column = self.column();
        let field = match self.take() {
            Some(Token::Word(word)) => word.to_ascii_lowercase(),
            Some(other) => {
                let why = format!("{} here; expected {}", named(&other), list(&FIELDS));
                return Err(InvalidExpression::at(column, why));
            }
            None => {
                let why = format!("the expression ends here; expected {}", list(&FIELDS));
                return Err(InvalidExpression::at(column, why));
            }
        };
        match &*field {
            "host" => self.host(),
            "site" => self.site(),
            "scheme" => self.scheme(),
            "depth" => self.number(Atom::Depth),
            "parameters" => self.number(Atom::Parameters),
            "lang" => self.language(),
            "type" => self.media_type(),
            "path" => self.text(Part::Path),
            "query" => self.text(Part::Query),
            "url" => self.text(Part::Url),
            "title" => self.text(Part::Title),
            "text" => self.text(Part::Text),
            "from" => self.same_origin(),
            other => Err(InvalidExpression::at(column, unknown_field(other))),
        }
    }

    fn host(&mut self) -> Result<Node, InvalidExpression> {
        let (relation, is_negated) = self.relation("host", &["under", "=", "!="])?;
        let domain = self.domain(&format!("host {relation}"))?;
        let atom = match relation {
            "under" => Atom::HostUnder(domain),
            _ => Atom::Host(domain),
        };
        Ok(negated_if(is_negated, atom))
    }

    fn site(&mut self) -> Result<Node, InvalidExpression> {
        let (_, is_negated) = self.relation("site", &["=", "!="])?;
        let column = self.column();
        let domain = self.domain("site =")?;
        if domain.site() != domain.as_str() {
            let why = format!(
                "{domain} is a host of the site {site}; right is site = {site} or host under {domain}",
                site = domain.site()
            );
            return Err(InvalidExpression::at(column, why));
        }
        Ok(negated_if(is_negated, Atom::Site(domain)))
    }

    fn scheme(&mut self) -> Result<Node, InvalidExpression> {
        let (_, is_negated) = self.relation("scheme", &["=", "!="])?;
        let (column, value) = self.value("http or https")?;
        let atom = match &*value.to_ascii_lowercase() {
            "http" => Atom::Http,
            "https" => Atom::Https,
            _ => {
                let why = format!("{value:?} is no scheme that is crawled; right is http or https");
                return Err(InvalidExpression::at(column, why));
            }
        };
        Ok(negated_if(is_negated, atom))
    }

    fn number(&mut self, atom: fn(Comparison, u32) -> Atom) -> Result<Node, InvalidExpression> {
        let (relation, is_negated) =
            self.relation("a number", &["<=", "<", "=", "!=", ">=", ">"])?;
        let comparison = match relation {
            "<" => Comparison::Less,
            "<=" => Comparison::AtMost,
            ">=" => Comparison::AtLeast,
            ">" => Comparison::More,
            _ => Comparison::Equal,
        };
        let (column, value) = self.value("a number such as 5")?;
        let number = value.parse().map_err(|_| {
            let why = format!("{value:?} is no whole number; right is one such as 5");
            InvalidExpression::at(column, why)
        })?;
        Ok(negated_if(is_negated, atom(comparison, number)))
    }

    fn language(&mut self) -> Result<Node, InvalidExpression> {
        let (_, is_negated) = self.relation("lang", &["=", "!="])?;
        let (column, value) = self.value("a language such as de")?;
        let tag = value.to_ascii_lowercase();
        let mut subtags = tag.split('-');
        let has_letters = |part: &str| part.chars().all(|c| c.is_ascii_lowercase());
        let is_first = |part: &str| (2..=3).contains(&part.len()) && has_letters(part);
        let is_later = |part: &str| {
            (1..=8).contains(&part.len()) && part.chars().all(|c| c.is_ascii_alphanumeric())
        };
        if !subtags.next().is_some_and(is_first) || !subtags.all(is_later) {
            let why = format!("{value:?} is no language; right is a tag such as de, en or pt-br");
            return Err(InvalidExpression::at(column, why));
        }
        Ok(negated_if(is_negated, Atom::Language(tag)))
    }

    fn media_type(&mut self) -> Result<Node, InvalidExpression> {
        let (_, is_negated) = self.relation("type", &["=", "!="])?;
        let (column, value) = self.value("html, pdf, a media type…")?;
        let name = value.to_ascii_lowercase();
        let one_of = |names: &[&'static str]| names.iter().copied().find(|known| *known == name);
        let kind = if name == "html" {
            Some(MediaKind::Html)
        } else if let Some(family) = one_of(&FAMILIES) {
            Some(MediaKind::Family(family))
        } else if let Some(short) = one_of(&SHORT_TYPES) {
            Some(MediaKind::Short(short))
        } else {
            is_media_type(&name).then_some(MediaKind::Exact(name))
        };
        let kind = kind.ok_or_else(|| {
            let why = format!(
                "{value:?} is no kind of document; right is html, {}, {}, or a media type such as \
                 application/zip",
                FAMILIES.join(", "),
                SHORT_TYPES.join(", ")
            );
            InvalidExpression::at(column, why)
        })?;
        Ok(negated_if(is_negated, Atom::Type(kind)))
    }

    fn text(&mut self, part: Part) -> Result<Node, InvalidExpression> {
        let relations: &[&str] = match part {
            Part::Path => &["under", "=", "!=", "starts", "ends", "contains"],
            Part::Url | Part::Query | Part::Title => &["=", "!=", "starts", "ends", "contains"],
            Part::Text => &["contains"],
        };
        let (relation, is_negated) = self.relation(part.word(), relations)?;
        let (column, value) = self.value("a text, in quotation marks if it has spaces")?;
        let is_of_url = matches!(part, Part::Url | Part::Path | Part::Query);
        let value = if is_of_url { escaped(&value) } else { value };
        let is_whole_path =
            part == Part::Path && matches!(relation, "under" | "=" | "!=" | "starts");
        if is_whole_path && !value.starts_with('/') {
            let right = format!("/{value}");
            let why = format!(
                "a path begins with /; right is path {relation} {}",
                quoted(&right)
            );
            return Err(InvalidExpression::at(column, why));
        }
        if value.is_empty() && !matches!(relation, "=" | "!=") {
            let why = format!(
                "an empty text; right is {} {relation} and a text",
                part.word()
            );
            return Err(InvalidExpression::at(column, why));
        }
        let atom = match relation {
            "under" => Atom::PathUnder(value),
            "starts" => Atom::Starts(part, value),
            "ends" => Atom::Ends(part, value),
            "contains" => Atom::Contains(part, value.to_lowercase()),
            _ => Atom::Equals(part, value),
        };
        Ok(negated_if(is_negated, atom))
    }

    fn same_origin(&mut self) -> Result<Node, InvalidExpression> {
        let column = self.column();
        if self.takes_word("same") {
            if self.takes_word("site") {
                return Ok(Node::Atom(Atom::FromSameSite));
            }
            if self.takes_word("host") {
                return Ok(Node::Atom(Atom::FromSameHost));
            }
        }
        let why = "right is from same site or from same host".to_owned();
        Err(InvalidExpression::at(column, why))
    }

    /// One of these relations; `!=` is `=` with a negation.
    fn relation(
        &mut self,
        field: &str,
        known: &[&'static str],
    ) -> Result<(&'static str, bool), InvalidExpression> {
        let column = self.column();
        let taken = self.take();
        let text = match &taken {
            Some(Token::Word(word)) => word.to_ascii_lowercase(),
            Some(Token::Sign(sign)) => (*sign).to_owned(),
            _ => String::new(),
        };
        match known.iter().find(|relation| **relation == text) {
            Some(&"!=") => Ok(("=", true)),
            Some(relation) => Ok((relation, false)),
            None => {
                let found = taken.as_ref().map_or_else(
                    || "the expression ends here".to_owned(),
                    |token| format!("{} here", named(token)),
                );
                let why = format!("{found}; after {field} comes {}", list(known));
                Err(InvalidExpression::at(column, why))
            }
        }
    }

    fn value(&mut self, expected: &str) -> Result<(usize, String), InvalidExpression> {
        let column = self.column();
        match self.take() {
            Some(Token::Word(text) | Token::Text(text)) => Ok((column, text)),
            Some(other) => {
                let why = format!("{} here; expected {expected}", named(&other));
                Err(InvalidExpression::at(column, why))
            }
            None => {
                let why = format!("the expression ends here; expected {expected}");
                Err(InvalidExpression::at(column, why))
            }
        }
    }

    fn domain(&mut self, before: &str) -> Result<Domain, InvalidExpression> {
        let (column, value) = self.value("a name such as example.org")?;
        // A URL parser lets stars pass, but no host has one.
        let parsed: Result<Domain, _> = value.parse();
        if let Ok(domain) = &parsed
            && !value.contains('*')
        {
            return Ok(domain.clone());
        }
        let host = host_within(&value);
        let right = host.parse::<Domain>().ok().filter(|_| host != value);
        let why = match right {
            Some(host) => format!("{value:?} is no host name; right is {before} {host}"),
            None => format!("{value:?} is no host name; right is one such as example.org"),
        };
        Err(InvalidExpression::at(column, why))
    }

    fn take(&mut self) -> Option<Token> {
        let token = self.tokens.get(self.next)?.token.clone();
        self.next += 1;
        Some(token)
    }

    fn takes(&mut self, wanted: &Token) -> bool {
        let is_there = self.tokens.get(self.next).map(|placed| &placed.token) == Some(wanted);
        self.next += usize::from(is_there);
        is_there
    }

    fn takes_word(&mut self, wanted: &str) -> bool {
        let is_there = match self.tokens.get(self.next).map(|placed| &placed.token) {
            Some(Token::Word(word)) => word.eq_ignore_ascii_case(wanted),
            _ => false,
        };
        self.next += usize::from(is_there);
        is_there
    }

    fn column(&self) -> usize {
        self.tokens
            .get(self.next)
            .map_or(self.end, |placed| placed.column)
    }
}

fn negated_if(is_negated: bool, atom: Atom) -> Node {
    let node = Node::Atom(atom);
    if is_negated {
        Node::Not(Box::new(node))
    } else {
        node
    }
}

fn named(token: &Token) -> String {
    match token {
        Token::Word(text) | Token::Text(text) => {
            let short: String = text.chars().take(40).collect();
            format!("{short:?}")
        }
        Token::Sign(sign) => format!("{sign:?}"),
        Token::Open => "an opening parenthesis".to_owned(),
        Token::Close => "a closing parenthesis".to_owned(),
    }
}

/// `a, b or c`.
fn list(names: &[&str]) -> String {
    match names {
        [] => String::new(),
        [only] => (*only).to_owned(),
        [first @ .., last] => format!("{} or {last}", first.join(", ")),
    }
}

fn unknown_field(word: &str) -> String {
    let short: String = word.chars().take(40).collect();
    let meant = match word {
        "domain" => Some("host or site"),
        "language" => Some("lang"),
        "mime" | "content-type" | "content" => Some("type"),
        "same" => Some("from same site"),
        "contains" => Some("url contains, title contains or text contains"),
        "protocol" => Some("scheme"),
        word => FIELDS.into_iter().find(|field| is_near(word, field)),
    };
    match meant {
        Some(meant) => format!("{short:?} is no word of expressions; right may be {meant}"),
        None => format!(
            "{short:?} is no word of expressions; expected {}",
            list(&FIELDS)
        ),
    }
}

/// Whether two words differ by one letter that is wrong, missing, too many, or in another place.
fn is_near(word: &str, known: &str) -> bool {
    let (word, known): (Vec<char>, Vec<char>) = (word.chars().collect(), known.chars().collect());
    if word.len().abs_diff(known.len()) > 1 {
        return false;
    }
    let same = |a: &mut dyn Iterator<Item = &char>, b: &mut dyn Iterator<Item = &char>| {
        a.zip(b).take_while(|(a, b)| a == b).count()
    };
    let front = same(&mut word.iter(), &mut known.iter());
    let (word, known) = (&word[front..], &known[front..]);
    let back = same(&mut word.iter().rev(), &mut known.iter().rev());
    let (word, known) = (&word[..word.len() - back], &known[..known.len() - back]);
    let is_swapped = matches!((word, known), ([a, b], [c, d]) if a == d && b == c);
    is_swapped || (word.len() <= 1 && known.len() <= 1)
}

/// The host in what people write instead of one: a URL, or a pattern with a star.
fn host_within(text: &str) -> &str {
    let text = text.split_once("://").map_or(text, |(_, rest)| rest);
    let text = text.split(['/', '?', ':']).next().unwrap_or(text);
    text.trim_start_matches(['*', '.'])
}

fn is_media_type(name: &str) -> bool {
    let is_token = |part: &str| {
        !part.is_empty()
            && part
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || "!#$&-^_.+".contains(c))
    };
    name.len() <= 127
        && name
            .split_once('/')
            .is_some_and(|(kind, subtype)| is_token(kind) && is_token(subtype))
}

/// A text as it stands in a canonical URL: what is not plain ASCII is percent-encoded.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        if character.is_ascii_graphic() {
            out.push(character);
        } else {
            let mut bytes = [0; 4];
            for byte in character.encode_utf8(&mut bytes).bytes() {
                out.push_str(&format!("%{byte:02X}"));
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Expression, InvalidExpression> {
        text.parse()
    }

    #[test]
    fn expressions_print_as_they_are_understood() {
        for (text, printed) in [
            ("host under example.org", "host under example.org"),
            ("HOST UNDER Example.ORG", "host under example.org"),
            ("host=a.example", "host = a.example"),
            ("host != a.example", "not host = a.example"),
            ("site = example.co.uk", "site = example.co.uk"),
            ("depth<=5 and(lang=DE)", "depth <= 5 and lang = de"),
            (
                "lang = de or lang = fr and not (depth > 3 or type = pdf)",
                "lang = de or lang = fr and not (depth > 3 or type = pdf)",
            ),
            (
                "(lang = de or lang = fr) and all",
                "(lang = de or lang = fr) and all",
            ),
            ("((none))", "none"),
            ("not not all", "not not all"),
            (
                "path under /docs and path ends .PDF",
                "path under /docs and path ends .PDF",
            ),
            ("path = '/a b'", "path = /a%20b"),
            ("query = \"\"", "query = \"\""),
            (
                "title contains 'Große \"Welt\"'",
                "title contains \"große \\\"welt\\\"\"",
            ),
            ("text contains and", "text contains \"and\""),
            ("url contains 'x=1'", "url contains \"x=1\""),
            (
                "type = text/css or type = image",
                "type = text/css or type = image",
            ),
            (
                "from same site and from same host",
                "from same site and from same host",
            ),
            ("parameters < 2", "parameters < 2"),
            ("scheme != http", "not scheme = http"),
            ("host = [::1]", "host = [::1]"),
        ] {
            let expression = parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
            assert_eq!(expression.to_string(), printed, "{text}");
            assert_eq!(parse(printed), Ok(expression), "{text}");
        }
    }

    #[test]
    fn errors_name_the_column_and_what_would_be_right() {
        for (text, column, words) in [
            ("", 1, "expected host, site"),
            ("depht <= 5", 1, "right may be depth"),
            ("host example.org", 6, "after host comes under, = or !="),
            ("host under", 11, "expected a name such as example.org"),
            (
                "host under https://example.org/x",
                12,
                "right is host under example.org",
            ),
            (
                "host under *.example.org",
                12,
                "right is host under example.org",
            ),
            ("host under a..b", 12, "one such as example.org"),
            ("site = www.example.org", 8, "right is site = example.org"),
            ("depth <= five", 10, "no whole number"),
            ("depth <= -1", 10, "no whole number"),
            ("depth == 5", 7, "\"==\" is written ="),
            ("depth < 5 && lang = de", 11, "\"&&\" is written and"),
            ("!lang = de", 1, "\"!\" is written not"),
            ("lang = german", 8, "a tag such as de"),
            ("language = de", 1, "right may be lang"),
            ("type = web", 8, "html, text, image"),
            ("scheme = ftp", 10, "right is http or https"),
            ("path under docs", 12, "right is path under /docs"),
            ("path contains \"\"", 15, "an empty text"),
            ("text = x", 6, "after text comes contains"),
            ("title contains 'x", 16, "no closing '"),
            ("(lang = de", 11, "closes the one at column 1"),
            ("lang = de)", 10, "was never opened"),
            ("lang = de lang = fr", 11, "expected and, or, or the end"),
            ("lang = de and", 14, "the expression ends here"),
            ("from the same site", 6, "from same site or from same host"),
            ("ü = 1", 1, "is no word of expressions"),
            ("lang = de and ü ~", 15, "is no word of expressions"),
        ] {
            let error = parse(text).expect_err(text);
            assert_eq!(error.column, column, "{text}: {error}");
            assert!(error.why.contains(words), "{text}: {error}");
        }
    }

    #[test]
    fn size_and_nesting_are_bounded() {
        let nested = |depth: usize| format!("{}all{}", "(".repeat(depth), ")".repeat(depth));
        assert!(parse(&nested(MAX_NESTING)).is_ok());
        let error = parse(&nested(MAX_NESTING + 1)).unwrap_err();
        assert!(error.why.contains("nested"), "{error}");
        assert!(
            parse(&"not ".repeat(900))
                .unwrap_err()
                .why
                .contains("nested")
        );
        let atoms = |count: usize| vec!["depth < 1"; count].join(" or ");
        assert!(parse(&atoms(MAX_ATOMS)).is_ok());
        let error = parse(&atoms(MAX_ATOMS + 1)).unwrap_err();
        assert!(error.why.contains("conditions"), "{error}");
        let error = parse(&"(".repeat(1_000_000)).unwrap_err();
        assert!(error.why.contains("1000000 bytes"), "{error}");
    }
}
