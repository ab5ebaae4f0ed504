//! A crawl as a question: which pages it goes through, which of them it keeps, and when it ends.
//!
//! Two [`Expression`]s select pages. *Follow* is asked before a fetch, when only the URL and the
//! way to it are known, and *keep* after it. So an expression has three answers, see [`Truth`].

mod amount;
mod atom;
mod expression;
mod facts;
mod parser;
mod spec;
mod syntax;
mod token;

pub use amount::{InvalidAmount, Size, Span};
pub use atom::{Atom, Comparison, MediaKind, Part};
pub use expression::{Expression, MAX_NESTING};
pub use facts::{Facts, PageFacts, Truth, Via};
pub use parser::{InvalidExpression, MAX_ATOMS, MAX_EXPRESSION_BYTES};
pub use spec::{CrawlSpec, InvalidSpec, MAX_SPEC_BYTES};
