//! The words, texts and signs of an expression, each with its column.

use super::parser::InvalidExpression;

/// A piece of an expression.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Token {
    /// A word without quotation marks.
    Word(String),
    /// A text in quotation marks.
    Text(String),
    /// `=`, `<=`…
    Sign(&'static str),
    /// `(`
    Open,
    /// `)`
    Close,
}

/// A piece with the column of its first character, from 1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Placed {
    pub(super) token: Token,
    pub(super) column: usize,
}

/// Longer signs come before those that they begin with.
const SIGNS: [&str; 6] = ["!=", "<=", ">=", "=", "<", ">"];

/// Whether a character can be part of a word without quotation marks.
pub(super) fn is_bare(character: char) -> bool {
    !character.is_whitespace()
        && !character.is_control()
        && !matches!(
            character,
            '(' | ')' | '"' | '\'' | '=' | '<' | '>' | '!' | '&' | '|'
        )
}

/// Takes an expression apart.
pub(super) fn tokens(text: &str) -> Result<Vec<Placed>, InvalidExpression> {
    let characters: Vec<char> = text.chars().collect();
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(&character) = characters.get(at) {
        let column = at + 1;
        let token = match character {
            _ if character.is_whitespace() => {
                at += 1;
                continue;
            }
            '(' => single(&mut at, Token::Open),
            ')' => single(&mut at, Token::Close),
            '"' | '\'' => quoted_text(&characters, &mut at)?,
            _ if is_bare(character) => {
                let word: String = characters[at..]
                    .iter()
                    .take_while(|character| is_bare(**character))
                    .collect();
                at += word.chars().count();
                Token::Word(word)
            }
            _ => sign(&characters, &mut at)?,
        };
        found.push(Placed { token, column });
    }
    Ok(found)
}

fn single(at: &mut usize, token: Token) -> Token {
    *at += 1;
    token
}

/// A backslash takes the next character as it is.
fn quoted_text(characters: &[char], at: &mut usize) -> Result<Token, InvalidExpression> {
    let (column, mark) = (*at + 1, characters[*at]);
    let mut text = String::new();
    *at += 1;
    loop {
        match characters.get(*at) {
            Some(character) if *character == mark => {
                *at += 1;
                return Ok(Token::Text(text));
            }
            Some('\\') if *at + 1 < characters.len() => {
                text.push(characters[*at + 1]);
                *at += 2;
            }
            Some(character) => {
                text.push(*character);
                *at += 1;
            }
            None => {
                let why = format!("the text that begins here has no closing {mark}");
                return Err(InvalidExpression::at(column, why));
            }
        }
    }
}

fn sign(characters: &[char], at: &mut usize) -> Result<Token, InvalidExpression> {
    let column = *at + 1;
    let rest: String = characters[*at..].iter().take(2).collect();
    let advice = match &*rest {
        "==" => Some("\"==\" is written ="),
        "&&" => Some("\"&&\" is written and"),
        "||" => Some("\"||\" is written or"),
        "=<" => Some("\"=<\" is written <="),
        "=>" => Some("\"=>\" is written >="),
        _ => None,
    };
    if let Some(advice) = advice {
        return Err(InvalidExpression::at(column, advice.to_owned()));
    }
    if let Some(sign) = SIGNS.into_iter().find(|sign| rest.starts_with(sign)) {
        *at += sign.len();
        return Ok(Token::Sign(sign));
    }
    let character = characters[*at];
    let why = match character {
        '!' => "\"!\" is written not".to_owned(),
        _ => format!(
            "{character:?} means nothing here; a text with such a character is put in quotation \
             marks"
        ),
    };
    Err(InvalidExpression::at(column, why))
}
