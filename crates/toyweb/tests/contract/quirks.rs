//! Every quirk, tried with an ordinary client.

use crate::client::{Names, client};
use apoidea_model::PageUrl;
use apoidea_toyweb::{Fate, Quirk, ToyWeb};
use reqwest::{Client, Response, StatusCode};
use std::{
    collections::BTreeSet,
    io::Read,
    time::{Duration, Instant, SystemTime},
};

/// A web with some quirks and a client for it.
struct Visitor {
    web: ToyWeb,
    client: Client,
}

impl Visitor {
    async fn of(quirks: &[Quirk]) -> Self {
        let web = ToyWeb::builder(1)
            .hosts(2)
            .pages(4)
            .quirks(quirks.iter().copied())
            .start()
            .await
            .unwrap();
        Visitor {
            client: client(&web),
            web,
        }
    }

    fn url(&self, host: &str, path: &str) -> PageUrl {
        PageUrl::parse(&format!(
            "http://{host}.test:{}{path}",
            self.web.http_port()
        ))
        .unwrap()
    }

    async fn try_get(&self, host: &str, path: &str) -> reqwest::Result<Response> {
        self.client.get(self.url(host, path).as_str()).send().await
    }

    async fn get(&self, host: &str, path: &str) -> Response {
        self.try_get(host, path).await.unwrap()
    }

    async fn text(&self, host: &str, path: &str) -> String {
        self.get(host, path).await.text().await.unwrap()
    }

    async fn status(&self, host: &str, path: &str) -> u16 {
        self.get(host, path).await.status().as_u16()
    }

    fn fate(&self, host: &str, path: &str) -> Fate {
        self.web.truth().fate(&self.url(host, path))
    }
}

fn header<'a>(response: &'a Response, name: &str) -> &'a str {
    response.headers()[name].to_str().unwrap()
}

/// Waits for something that is about to happen.
async fn until(happened: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(5);
    while !happened() {
        assert!(Instant::now() < deadline, "it did not happen");
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn every_quirky_host_is_linked_and_its_urls_are_known() {
    let web = ToyWeb::builder(1).everything().start().await.unwrap();
    let client = client(&web);
    let mut linked = String::new();
    for (name, _) in web.truth().hosts() {
        let home = web
            .truth()
            .must_keep()
            .find(|url| url.host() == name && url.path() == "/")
            .unwrap();
        linked += &client
            .get(home.as_str())
            .send()
            .await
            .unwrap()
            .text()
            .await
            .unwrap();
    }
    let linked = linked.to_lowercase();
    let special: Vec<PageUrl> = [
        Fate::Keep,
        Fate::Visit,
        Fate::Either,
        Fate::Never,
        Fate::Later,
    ]
    .into_iter()
    .flat_map(|fate| web.truth().special(fate))
    .collect();
    let hosts: BTreeSet<&str> = special.iter().map(PageUrl::host).collect();
    assert!(hosts.len() >= Quirk::ALL.len());
    for host in hosts {
        assert!(
            linked.contains(&format!("//{host}:")),
            "{host} is not linked"
        );
    }
    assert!(special.iter().all(|url| url.as_str().len() < 1024));
}

/// What must be kept is served as a page, whatever else the host does.
#[tokio::test]
async fn every_page_to_keep_answers() {
    let web = ToyWeb::builder(1).everything().start().await.unwrap();
    let client = client(&web);
    for url in web.truth().special(Fate::Keep) {
        let response = client
            .get(url.as_str())
            .send()
            .await
            .unwrap_or_else(|error| panic!("{url}: {error:?}"));
        assert_eq!(response.status(), 200, "{url}");
        assert!(!response.bytes().await.unwrap().is_empty(), "{url}");
    }
    assert!(web.honeypot().intruders().is_empty());
}

#[tokio::test]
async fn robots_txt_of_every_kind() {
    use Quirk::*;
    let kinds = [
        RobotsForbidden,
        RobotsRules,
        RobotsWildcards,
        RobotsDelay,
        RobotsAgent,
        RobotsError,
        RobotsRecovers,
        RobotsTooMany,
        RobotsSlow,
        RobotsHuge,
        RobotsMoved,
        RobotsBinary,
        RobotsReset,
    ];
    let visitor = Visitor::of(&kinds).await;
    let robots = "/robots.txt";
    assert_eq!(visitor.status("robots-403", robots).await, 403);
    assert_eq!(visitor.fate("robots-403", "/one"), Fate::Keep);
    assert!(
        visitor
            .text("robots-rules", robots)
            .await
            .contains("Allow: /no/but-yes")
    );
    assert_eq!(visitor.fate("robots-rules", "/no/way"), Fate::Never);
    assert!(visitor.text("robots-wildcards", robots).await.contains("$"));
    assert!(
        visitor
            .text("robots-delay", robots)
            .await
            .contains("Crawl-delay: 2")
    );
    assert!(
        visitor
            .text("robots-agent", robots)
            .await
            .contains("User-agent: apoidea")
    );
    assert_eq!(visitor.status("robots-503", robots).await, 503);
    assert_eq!(
        (
            visitor.fate("robots-503", "/"),
            visitor.fate("robots-503", robots)
        ),
        (Fate::Never, Fate::Visit)
    );
    for status in [500, 500, 200] {
        assert_eq!(visitor.status("robots-recovers", robots).await, status);
    }
    assert_eq!(visitor.status("robots-429", robots).await, 429);
    let begun = Instant::now();
    assert!(visitor.text("robots-slow", robots).await.contains("/no"));
    assert!(begun.elapsed() >= Duration::from_secs(3));
    let huge = visitor.text("robots-huge", robots).await;
    assert!(huge.len() > 1_000_000 && huge.find("Disallow").unwrap() < 500 * 1024);
    assert!(
        visitor
            .get("robots-binary", robots)
            .await
            .bytes()
            .await
            .unwrap()
            .contains(&0)
    );
    assert!(visitor.try_get("robots-reset", robots).await.is_err());
    let mut url = visitor.url("robots-moved-far", robots);
    let mut hops = 0;
    loop {
        let response = visitor.client.get(url.as_str()).send().await.unwrap();
        if response.status() == 200 {
            break;
        }
        url = url.join(header(&response, "location")).unwrap();
        hops += 1;
    }
    assert_eq!((hops, url.host()), (5, "robots-elsewhere.test"));
}

#[tokio::test]
async fn redirects_lead_where_they_say() {
    use Quirk::*;
    let visitor = Visitor::of(&[
        Redirects,
        RedirectChain,
        RedirectLoop,
        RedirectAway,
        RedirectSchemes,
        RedirectPrivate,
    ])
    .await;
    for status in [301, 302, 303, 307, 308] {
        let response = visitor.get("redirects", &format!("/{status}")).await;
        assert_eq!(response.status().as_u16(), status);
        let target = visitor
            .url("redirects", "/")
            .join(header(&response, "location"))
            .unwrap();
        assert_eq!(
            target,
            visitor.url("redirects", &format!("/after-{status}"))
        );
    }
    assert_eq!(
        header(&visitor.get("redirect-chain", "/5").await, "location"),
        "/6"
    );
    assert_eq!(
        header(&visitor.get("redirect-loop", "/self").await, "location"),
        "/self"
    );
    assert!(
        header(&visitor.get("redirect-away", "/away").await, "location")
            .contains("redirect-arrival.test")
    );
    assert_eq!(
        header(&visitor.get("redirect-schemes", "/file").await, "location"),
        "file:///etc/passwd"
    );
    let private = visitor.get("redirect-private", "/1").await;
    let target = PageUrl::parse(header(&private, "location")).unwrap();
    assert_eq!(visitor.web.truth().fate(&target), Fate::Never);
    assert!(visitor.web.honeypot().intruders().is_empty());
}

#[tokio::test]
async fn honeypots_notice_whoever_connects() {
    let visitor = Visitor::of(&[Quirk::LinksPrivate]).await;
    let home = visitor.text("links-private", "/").await;
    let addresses = visitor.web.honeypot().addresses();
    assert!(
        addresses.len() >= 2
            && addresses
                .iter()
                .all(|address| home.contains(&format!("//{address}/")))
    );
    for address in addresses {
        drop(tokio::net::TcpStream::connect(address).await.unwrap());
    }
    until(|| visitor.web.honeypot().intruders().len() == addresses.len()).await;
}

#[tokio::test]
async fn names_resolve_in_unusual_ways() {
    use Quirk::*;
    let quirks = [
        NamesPrivate,
        NameMixed,
        NameRebinding,
        NameMissing,
        NameFailure,
        NameSilent,
        NameAliases,
        NameSixOnly,
    ];
    let visitor = Visitor::of(&quirks).await;
    // A fresh resolver each time: no cache in between.
    let look_up = async |name: &str| Names::of(&visitor.web).look_up(name).await;
    assert_eq!(
        look_up("name-ten.test").await.unwrap(),
        ["10.0.0.1".parse::<std::net::IpAddr>().unwrap()]
    );
    assert_eq!(look_up("name-mixed.test").await.unwrap().len(), 2);
    let first = look_up("name-rebinding.test").await.unwrap();
    assert!(visitor.web.addresses().contains(&first[0]));
    assert!(look_up("name-rebinding.test").await.unwrap()[0].is_loopback());
    assert_ne!(look_up("name-rebinding.test").await.unwrap(), first);
    for name in [
        "name-missing.test",
        "name-failure.test",
        "name-silent.test",
        "no-such-host.test",
    ] {
        assert!(look_up(name).await.is_err(), "{name}");
    }
    let answers = |name: &str| {
        let log = visitor.web.log();
        log.lookups
            .iter()
            .filter(|lookup| &*lookup.name == name)
            .map(|lookup| lookup.answer.clone())
            .collect::<Vec<_>>()
    };
    assert!(
        answers("name-silent.test")
            .iter()
            .all(|answer| answer == "silence")
    );
    assert_ne!(answers("name-missing.test"), answers("name-failure.test"));
    assert_eq!(visitor.status("name-aliases", "/").await, 200);
    assert!(
        answers("name-aliases.test")
            .iter()
            .any(|answer| answer.matches("alias-").count() == 4)
    );
    assert!(look_up("name-six.test").await.unwrap()[0].is_ipv6());
    assert_eq!(visitor.fate("name-mixed", "/robots.txt"), Fate::Never);
}

#[tokio::test]
async fn busy_hosts_say_for_how_long_and_recover() {
    let visitor = Visitor::of(&[Quirk::BusySeconds, Quirk::BusyDate, Quirk::BusyAlways]).await;
    let response = visitor.get("busy-seconds", "/busy").await;
    assert_eq!(
        (response.status().as_u16(), header(&response, "retry-after")),
        (429, "2")
    );
    let response = visitor.get("busy-date", "/busy").await;
    let until = httpdate::parse_http_date(header(&response, "retry-after")).unwrap();
    let wait = until.duration_since(SystemTime::now()).unwrap();
    assert!(
        response.status() == 503 && wait <= Duration::from_secs(3),
        "{wait:?}"
    );
    for host in ["busy-seconds", "busy-date"] {
        visitor.get(host, "/busy").await;
        assert_eq!(visitor.status(host, "/busy").await, 200);
    }
    for _ in 0..4 {
        assert_eq!(visitor.status("busy-always", "/").await, 503);
    }
}

fn unpack(mut reader: impl Read) -> std::io::Result<String> {
    let mut text = String::new();
    reader.read_to_string(&mut text).map(|_| text)
}

#[tokio::test]
async fn bodies_are_packed_honestly_and_dishonestly() {
    let visitor = Visitor::of(&[Quirk::Encodings, Quirk::EncodingsLie, Quirk::GzipBomb]).await;
    let bytes = async |host, path| visitor.get(host, path).await.bytes().await.unwrap();
    let gunzip = |bytes: &[u8]| unpack(flate2::read::GzDecoder::new(bytes));
    let unbrotli = |bytes: &[u8]| unpack(brotli::Decompressor::new(bytes, 4096));
    for path in ["/gzip", "/gzip-chunked", "/x-gzip"] {
        let text = gunzip(&bytes("encodings", path).await).unwrap();
        assert!(
            text.contains(&format!("encodings.test{path}</title>")),
            "{path}"
        );
    }
    for path in ["/brotli", "/brotli-chunked"] {
        let text = unbrotli(&bytes("encodings", path).await).unwrap();
        assert!(
            text.contains(&format!("encodings.test{path}</title>")),
            "{path}"
        );
    }
    let deflated = bytes("encodings", "/deflate").await;
    assert!(
        unpack(flate2::read::ZlibDecoder::new(&deflated[..]))
            .unwrap()
            .contains("/deflate")
    );
    assert_eq!(
        header(
            &visitor.get("encodings", "/brotli-chunked").await,
            "transfer-encoding"
        ),
        "chunked"
    );
    assert_eq!(
        header(
            &visitor.get("encodings-lie", "/not-gzip").await,
            "content-encoding"
        ),
        "gzip"
    );
    assert!(gunzip(&bytes("encodings-lie", "/not-gzip").await).is_err());
    assert!(unbrotli(&bytes("encodings-lie", "/gzip-as-brotli").await).is_err());
    assert!(gunzip(&bytes("encodings-lie", "/secretly-gzip").await).is_ok());
    let boom = bytes("gzip-bomb", "/boom").await;
    let unpacked = std::io::copy(
        &mut flate2::read::GzDecoder::new(&boom[..]),
        &mut std::io::sink(),
    )
    .unwrap();
    assert!(
        boom.len() < 200_000 && unpacked > 100 * 1024 * 1024,
        "{} {unpacked}",
        boom.len()
    );
}

#[tokio::test]
async fn pages_come_in_many_character_sets() {
    let visitor = Visitor::of(&[Quirk::Charsets]).await;
    let bytes = async |path| visitor.get("charsets", path).await.bytes().await.unwrap();
    let contains =
        |bytes: &[u8], part: &[u8]| bytes.windows(part.len()).any(|window| window == part);
    assert!(contains(&bytes("/windows-1251").await, b"\xcf\xf7"));
    assert!(contains(&bytes("/shift-jis").await, b"shift_jis"));
    assert!(bytes("/utf-16-mark").await.starts_with(b"\xff\xfe<\0"));
    assert!(bytes("/utf-16-header").await.starts_with(b"<\0!\0"));
    assert!(std::str::from_utf8(&bytes("/lying-header").await).is_err());
    assert_eq!(
        header(
            &visitor.get("charsets", "/utf-8-undeclared").await,
            "content-type"
        ),
        "text/html"
    );
}

#[tokio::test]
async fn bodies_are_broken_or_boundless() {
    use Quirk::*;
    let visitor = Visitor::of(&[
        BrokenHtml,
        NotHtml,
        BodyEndless,
        BodyLarge,
        BodyReset,
        BodyShort,
        BodyLong,
    ])
    .await;
    assert!(
        visitor
            .text("broken-html", "/")
            .await
            .contains("/not-eleven")
    );
    assert_eq!(
        header(&visitor.get("not-html", "/paper.pdf").await, "content-type"),
        "application/pdf"
    );
    let mut endless = visitor.get("body-endless", "/page").await;
    let mut read = 0;
    while read < 5_000_000 {
        read += endless.chunk().await.unwrap().unwrap().len();
    }
    drop(endless);
    let is_noted = || {
        visitor
            .web
            .log()
            .visits
            .iter()
            .any(|visit| visit.answered.is_some() && visit.bytes >= read as u64)
    };
    until(is_noted).await;
    assert_eq!(
        visitor.text("body-long", "/page").await,
        "<title>longer than it says</title>"
    );
    assert!(
        visitor
            .get("body-large", "/page")
            .await
            .content_length()
            .unwrap()
            > 3 * 1024 * 1024
    );
    for host in ["body-reset", "body-short"] {
        assert!(
            visitor.get(host, "/page").await.bytes().await.is_err(),
            "{host}"
        );
        assert_eq!(visitor.status(host, "/other").await, 200);
    }
}

#[tokio::test]
async fn servers_are_slow_old_or_no_web_servers() {
    use Quirk::*;
    let visitor = Visitor::of(&[SlowHead, SlowBody, OldHttp, HugeHead, Reset, NotHttp]).await;
    let hasty = Duration::from_millis(700);
    let url = |host| visitor.url(host, "/page").to_string();
    assert!(
        visitor
            .client
            .get(url("slow-head"))
            .timeout(hasty)
            .send()
            .await
            .unwrap_err()
            .is_timeout()
    );
    let slow = visitor
        .client
        .get(url("slow-body"))
        .timeout(hasty)
        .send()
        .await
        .unwrap();
    assert!(slow.bytes().await.unwrap_err().is_timeout());
    let old = visitor.get("old-http", "/page").await;
    assert_eq!(old.version(), reqwest::Version::HTTP_10);
    assert!(old.text().await.unwrap().contains("old-http.test/page"));
    for host in ["huge-head", "reset", "not-http"] {
        assert!(visitor.try_get(host, "/page").await.is_err(), "{host}");
        assert_eq!(visitor.status(host, "/other").await, 200);
    }
}

#[tokio::test]
async fn traps_go_on_for_ever() {
    use Quirk::*;
    let visitor =
        Visitor::of(&[TrapCalendar, TrapSession, TrapRepeat, TrapDepth, TrapFacets]).await;
    for host in [
        "trap-calendar",
        "trap-session",
        "trap-repeat",
        "trap-depth",
        "trap-facets",
    ] {
        assert_eq!(visitor.fate(host, "/about"), Fate::Keep);
        let mut url = visitor.url(host, "/");
        let mut seen = BTreeSet::new();
        for _ in 0..20 {
            assert!(seen.insert(url.clone()), "{host} ends at {url}");
            let text = visitor
                .client
                .get(url.as_str())
                .send()
                .await
                .unwrap()
                .text()
                .await
                .unwrap();
            let (_, link) = text.split_once("href=\"").unwrap();
            url = url
                .join(&link[..link.find('"').unwrap()].replace("&amp;", "&"))
                .unwrap();
            assert_eq!(visitor.web.truth().fate(&url), Fate::Either, "{url}");
        }
    }
}

#[tokio::test]
async fn sitemaps_know_pages_that_nothing_links_to() {
    let visitor = Visitor::of(&[Quirk::Sitemaps]).await;
    assert!(!visitor.text("sitemaps", "/").await.contains("/in-"));
    assert!(
        visitor
            .text("sitemaps", "/robots.txt")
            .await
            .contains("/index.xml")
    );
    assert!(
        visitor
            .text("sitemaps", "/index.xml")
            .await
            .contains("/packed.xml.gz")
    );
    assert!(
        visitor
            .text("sitemaps", "/plain.xml")
            .await
            .contains("/in-xml?a=1&amp;b=2")
    );
    assert!(
        visitor
            .text("sitemaps", "/list.txt")
            .await
            .contains("/in-text")
    );
    let packed = visitor
        .get("sitemaps", "/packed.xml.gz")
        .await
        .bytes()
        .await
        .unwrap();
    assert!(
        unpack(flate2::read::GzDecoder::new(&packed[..]))
            .unwrap()
            .contains("/in-gzip")
    );
    assert_eq!(visitor.fate("sitemaps", "/in-xml?a=1&b=2"), Fate::Keep);
}

#[tokio::test]
async fn directives_stand_in_headers_and_in_pages() {
    let visitor = Visitor::of(&[Quirk::Directives]).await;
    assert_eq!(
        header(
            &visitor.get("directives", "/header-none").await,
            "x-robots-tag"
        ),
        "none"
    );
    assert!(
        visitor
            .text("directives", "/meta-nofollow")
            .await
            .contains("CONTENT=\"Index, NoFollow\"")
    );
    for (path, fate) in [
        ("/meta-noindex", Fate::Visit),
        ("/after-meta-noindex", Fate::Keep),
        ("/meta-nofollow", Fate::Keep),
        ("/after-meta-nofollow", Fate::Never),
        ("/after-header-other", Fate::Keep),
        ("/rel-nofollow", Fate::Never),
    ] {
        assert_eq!(visitor.fate("directives", path), fate, "{path}");
    }
}

#[tokio::test]
async fn copies_conditions_and_refusals() {
    use Quirk::*;
    let visitor = Visitor::of(&[Copies, Conditional, Forbids, Challenge]).await;
    let group = visitor
        .web
        .truth()
        .copies()
        .into_iter()
        .find(|group| group.len() == 4)
        .unwrap();
    let mut bodies = BTreeSet::new();
    for url in group {
        let body = visitor
            .client
            .get(url.as_str())
            .send()
            .await
            .unwrap()
            .bytes()
            .await
            .unwrap();
        bodies.insert(apoidea_model::ContentHash::of_body(&body));
    }
    assert_eq!(bodies.len(), 1);
    let url = visitor.url("conditional", "/page").to_string();
    let known = visitor.get("conditional", "/page").await;
    for (name, value) in [
        ("if-none-match", header(&known, "etag")),
        ("if-modified-since", header(&known, "last-modified")),
    ] {
        let again = visitor
            .client
            .get(&url)
            .header(name, value)
            .send()
            .await
            .unwrap();
        assert_eq!(again.status(), StatusCode::NOT_MODIFIED);
    }
    assert_eq!(visitor.status("forbids", "/page-7").await, 403);
    assert!(
        visitor
            .text("challenge", "/")
            .await
            .contains("Just a moment")
    );
}

#[tokio::test]
async fn certificates_are_good_or_bad() {
    let visitor = Visitor::of(&[Quirk::Secure, Quirk::CertificatesBad]).await;
    let url = |host| format!("https://{host}.test:{}/", visitor.web.https_port());
    assert_eq!(
        visitor
            .client
            .get(url("secure"))
            .send()
            .await
            .unwrap()
            .status(),
        200
    );
    for (host, reason) in [
        ("secure-self-signed", "UnknownIssuer"),
        ("secure-expired", "expired"),
        ("secure-other-name", "not valid for name"),
    ] {
        let error = format!(
            "{:?}",
            visitor.client.get(url(host)).send().await.unwrap_err()
        );
        assert!(
            error.contains(reason)
                || error.contains("Expired")
                || error.contains("NotValidForName"),
            "{error}"
        );
    }
    assert_eq!(
        visitor.web.log().visits.len(),
        1,
        "a bad certificate is refused before anything is asked"
    );
}

#[tokio::test]
async fn a_stopped_web_answers_no_more() {
    let visitor = Visitor::of(&[Quirk::BodyEndless, Quirk::SlowHead]).await;
    let (client, url) = (visitor.client.clone(), visitor.url("body-endless", "/page"));
    let address = (visitor.web.addresses()[0], visitor.web.http_port());
    let _unread = client.get(url.as_str()).send().await.unwrap();
    visitor.web.stop().await.unwrap();
    assert!(tokio::net::TcpStream::connect(address).await.is_err());
}
