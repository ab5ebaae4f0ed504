//! Hosts over HTTPS, with a good certificate and with bad ones. A bad one must be refused before
//! anything is asked.

use super::Ground;
use crate::{
    atlas::Scheme,
    site::{Certificate, Site},
    truth::Fate,
};

fn site(ground: &Ground, name: &str) -> Site {
    Site::new(name, Scheme::Https, ground.ports)
        .home(&["/one"])
        .leaves(&["/one"])
}

pub(super) fn good(ground: &Ground) -> Vec<Site> {
    vec![site(ground, "secure")]
}

pub(super) fn bad(ground: &Ground) -> Vec<Site> {
    let kinds = [
        ("secure-self-signed", Certificate::SelfSigned),
        ("secure-expired", Certificate::Expired),
        ("secure-other-name", Certificate::OtherName),
    ];
    kinds
        .map(|(name, kind)| site(ground, name).certificate(kind).doomed(Fate::Never))
        .into()
}
