//! The catalogue of quirks: each is a host, or a few, that behaves in one unusual way. The files
//! below hold one family each; what a crawler must make of every URL is said beside what the URL
//! answers.

mod backoff;
mod bodies;
mod certificates;
mod charsets;
mod connections;
mod copies;
mod directives;
mod encodings;
mod names;
mod private;
mod redirects;
mod refusals;
mod robots;
mod sitemaps;
mod traps;

use crate::{
    atlas::{Ports, Scheme},
    site::Site,
};
use serde::{Deserialize, Serialize};
use std::net::{IpAddr, SocketAddr};

/// What a site must know about the web it is part of.
pub(crate) struct Ground {
    pub(crate) ports: Ports,
    /// An address of the web itself.
    pub(crate) here: IpAddr,
    /// Addresses that must never be connected to.
    pub(crate) honeypots: Vec<SocketAddr>,
}

impl Ground {
    /// A new host over HTTP.
    fn site(&self, name: &str) -> Site {
        Site::new(name, Scheme::Http, self.ports)
    }

    /// The origin of another host over HTTP.
    fn origin(&self, name: &str) -> String {
        self.ports.origin(Scheme::Http, &format!("{name}.test"))
    }
}

macro_rules! catalogue {
    ($($(#[$doc:meta])+ $quirk:ident => $sites:path,)+) => {
        /// An unusual way for a host to behave. The hosts that a quirk adds are linked from
        /// ordinary home pages.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(rename_all = "kebab-case")]
        pub enum Quirk {
            $($(#[$doc])+ $quirk,)+
        }

        impl Quirk {
            /// Every quirk there is.
            pub const ALL: &[Quirk] = &[$(Quirk::$quirk,)+];

            pub(crate) fn sites(self, ground: &Ground) -> Vec<Site> {
                match self {
                    $(Quirk::$quirk => $sites(ground),)+
                }
            }
        }
    };
}

catalogue! {
    /// `robots-403`: robots.txt is forbidden, which allows everything.
    RobotsForbidden => robots::forbidden,
    /// `robots-rules`: paths are disallowed, with an exception.
    RobotsRules => robots::rules,
    /// `robots-wildcards`: rules with `*` and `$`, decided by the longest match.
    RobotsWildcards => robots::wildcards,
    /// `robots-delay`: a Crawl-delay of two seconds.
    RobotsDelay => robots::delay,
    /// `robots-agent`: a group for Apoidea allows what the group for all forbids, and the other way
    /// round.
    RobotsAgent => robots::agent,
    /// `robots-503`: robots.txt always fails, which forbids everything.
    RobotsError => robots::error,
    /// `robots-recovers`: robots.txt fails twice and then allows everything.
    RobotsRecovers => robots::recovers,
    /// `robots-429`: robots.txt is always refused for being asked too often, which forbids
    /// everything.
    RobotsTooMany => robots::too_many,
    /// `robots-slow`: robots.txt takes three seconds.
    RobotsSlow => robots::slow,
    /// `robots-huge`: a robots.txt of 1 MiB with a rule that counts before 500 KiB.
    RobotsHuge => robots::huge,
    /// `robots-moved`, `robots-moved-far`: robots.txt lies behind one and behind five redirects, on
    /// another host.
    RobotsMoved => robots::moved,
    /// `robots-binary`: robots.txt is not text.
    RobotsBinary => robots::binary,
    /// `robots-reset`: the connection breaks when robots.txt is asked for, which forbids
    /// everything.
    RobotsReset => robots::reset,
    /// `redirects`: 301, 302, 303, 307 and 308.
    Redirects => redirects::every_status,
    /// `redirect-chain`: five redirects in a row.
    RedirectChain => redirects::chain,
    /// `redirect-loop`: a redirect to itself, and two to each other.
    RedirectLoop => redirects::circle,
    /// `redirect-away`, `redirect-arrival`: a redirect to another host.
    RedirectAway => redirects::away,
    /// `redirect-schemes`: redirects to what is not http.
    RedirectSchemes => redirects::schemes,
    /// `redirect-private`: redirects into private networks and to honeypots.
    RedirectPrivate => private::redirects,
    /// `links-private`: links into private networks and to honeypots.
    LinksPrivate => private::links,
    /// `name-*`: names that resolve to private addresses.
    NamesPrivate => names::private,
    /// `name-mixed`: a name with a good and a private address.
    NameMixed => names::mixed,
    /// `name-rebinding`: a name that resolves to the web first and to a honeypot afterwards.
    NameRebinding => names::rebinding,
    /// `name-missing`: NXDOMAIN.
    NameMissing => names::missing,
    /// `name-failure`: SERVFAIL.
    NameFailure => names::failure,
    /// `name-silent`: DNS queries are never answered.
    NameSilent => names::silent,
    /// `name-aliases`: four CNAME records on the way.
    NameAliases => names::aliases,
    /// `name-six`: only an AAAA record, an IPv4-mapped address of the web.
    NameSixOnly => names::six_only,
    /// `busy-seconds`: 429 with Retry-After in seconds, then fine.
    BusySeconds => backoff::seconds,
    /// `busy-date`: 503 with Retry-After as a date, then fine.
    BusyDate => backoff::date,
    /// `busy-always`: 503 for ever.
    BusyAlways => backoff::always,
    /// `encodings`: gzip, brotli and deflate, whole and in chunks.
    Encodings => encodings::honest,
    /// `encodings-lie`: Content-Encoding says something else than the body.
    EncodingsLie => encodings::lies,
    /// `gzip-bomb`: 100 MiB in 100 KB.
    GzipBomb => encodings::bomb,
    /// `charsets`: windows-1251, shift_jis, UTF-16; declared by header, by meta, by nothing, or
    /// wrongly.
    Charsets => charsets::all,
    /// `broken-html`: markup that only a forgiving parser reads.
    BrokenHtml => bodies::broken_html,
    /// `not-html`: images, PDF and unknown bytes, linked like pages.
    NotHtml => bodies::not_html,
    /// `body-endless`: a body without end.
    BodyEndless => bodies::endless,
    /// `body-large`: a page of 3 MiB.
    BodyLarge => bodies::large,
    /// `body-reset`: the connection breaks within the body.
    BodyReset => bodies::reset,
    /// `body-short`: the body ends before its declared length.
    BodyShort => bodies::short,
    /// `body-long`: more bytes follow than were declared.
    BodyLong => bodies::long,
    /// `slow-head`: the response's head arrives byte by byte.
    SlowHead => connections::slow_head,
    /// `slow-body`: the body arrives byte by byte.
    SlowBody => connections::slow_body,
    /// `old-http`: HTTP/1.0 without a length.
    OldHttp => connections::old_http,
    /// `huge-head`: 256 KiB of headers.
    HugeHead => connections::huge_head,
    /// `reset`: the connection breaks instead of an answer.
    Reset => connections::reset,
    /// `not-http`: the answer is no HTTP.
    NotHttp => connections::not_http,
    /// `trap-calendar`: a calendar with a next month, always.
    TrapCalendar => traps::calendar,
    /// `trap-session`: session ids in query and path, new in every link.
    TrapSession => traps::session,
    /// `trap-repeat`: folders that repeat.
    TrapRepeat => traps::repeat,
    /// `trap-depth`: folders without end.
    TrapDepth => traps::depth,
    /// `trap-facets`: filters in the query, in every combination and order.
    TrapFacets => traps::facets,
    /// `sitemaps`: pages that only sitemaps know: XML, index, gzip, text.
    Sitemaps => sitemaps::all,
    /// `conditional`: entity tags and dates, 304 to whoever knows them.
    Conditional => copies::conditional,
    /// `copy-one`, `copy-two`: the same page at several URLs of several hosts.
    Copies => copies::everywhere,
    /// `directives`: noindex, nofollow, noarchive and none, in headers and meta, to all and to
    /// others.
    Directives => directives::all,
    /// `forbids`: a long run of 403.
    Forbids => refusals::forbids,
    /// `challenge`: a page that asks visitors to prove they are no robot.
    Challenge => refusals::challenge,
    /// `secure`: an ordinary host over HTTPS.
    Secure => certificates::good,
    /// `secure-self-signed`, `secure-expired`, `secure-other-name`: certificates that must be
    /// refused.
    CertificatesBad => certificates::bad,
}
