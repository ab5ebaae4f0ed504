//! Names that resolve in unusual ways. Where a name must not be connected to, no request may
//! arrive, not even for robots.txt.

use super::Ground;
use crate::{
    dns::Resolution,
    site::{Naming, Site},
    truth::Fate,
};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

const LOOPBACK: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

fn host(ground: &Ground, name: &str, naming: Naming) -> Site {
    ground
        .site(name)
        .naming(naming)
        .home(&["/one"])
        .leaves(&["/one"])
}

fn unreachable(ground: &Ground, name: &str, naming: Naming) -> Vec<Site> {
    vec![host(ground, name, naming).doomed(Fate::Never)]
}

/// Names of private addresses; where 127.0.0.1 and ::1 are not the web's own, honeypots listen
/// there.
pub(super) fn private(ground: &Ground) -> Vec<Site> {
    let addresses: [(&str, IpAddr); 6] = [
        ("name-ten", Ipv4Addr::new(10, 0, 0, 1).into()),
        ("name-home", Ipv4Addr::new(192, 168, 1, 1).into()),
        ("name-metadata", Ipv4Addr::new(169, 254, 169, 254).into()),
        ("name-any", Ipv4Addr::UNSPECIFIED.into()),
        ("name-loopback", LOOPBACK),
        ("name-loopback-six", Ipv6Addr::LOCALHOST.into()),
    ];
    let foreign = addresses
        .into_iter()
        .filter(|(_, address)| *address != ground.here);
    foreign
        .flat_map(|(name, address)| unreachable(ground, name, Naming::To(vec![address])))
        .collect()
}

pub(super) fn mixed(ground: &Ground) -> Vec<Site> {
    let bad = Ipv4Addr::new(10, 0, 0, 1).into();
    unreachable(ground, "name-mixed", Naming::To(vec![ground.here, bad]))
}

pub(super) fn rebinding(ground: &Ground) -> Vec<Site> {
    vec![host(ground, "name-rebinding", Naming::Rebinding(LOOPBACK)).doomed(Fate::Either)]
}

pub(super) fn missing(ground: &Ground) -> Vec<Site> {
    unreachable(ground, "name-missing", Naming::Not(Resolution::Missing))
}

pub(super) fn failure(ground: &Ground) -> Vec<Site> {
    unreachable(ground, "name-failure", Naming::Not(Resolution::Failure))
}

pub(super) fn silent(ground: &Ground) -> Vec<Site> {
    unreachable(ground, "name-silent", Naming::Not(Resolution::Silence))
}

pub(super) fn aliases(ground: &Ground) -> Vec<Site> {
    vec![host(ground, "name-aliases", Naming::Aliases(4))]
}

/// Whether it can be reached depends on the machine's IPv6, so it may be left out.
pub(super) fn six_only(ground: &Ground) -> Vec<Site> {
    let address = match ground.here {
        IpAddr::V4(address) => address.to_ipv6_mapped(),
        IpAddr::V6(address) => address,
    };
    vec![host(ground, "name-six", Naming::To(vec![address.into()])).doomed(Fate::Either)]
}
