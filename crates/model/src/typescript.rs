//! The nouns as they look in JSON, for the dashboard's generated types.

use crate::{Domain, Key, PageUrl, PeerId, Route, Time};
use ts_rs::{Config, TS};

macro_rules! plain {
    ($($noun:ty: $json:literal),+ $(,)?) => {
        $(impl TS for $noun {
            type WithoutGenerics = Self;
            type OptionInnerType = Self;

            fn name(_: &Config) -> String {
                $json.to_owned()
            }

            fn inline(_: &Config) -> String {
                $json.to_owned()
            }
        })+
    };
}

plain! {
    Domain: "string",
    Key: "string",
    PageUrl: "string",
    PeerId: "string",
    Route: "string",
    Time: "number",
}
