//! The scanner against the tree: same links in the same order, same title, language, canonical URL
//! and directives, on real pages, on nasty ones and on real ones broken at random.
//!
//! Where a tree builder moves or drops elements, the comparison is loosened by exactly that: see
//! [`Tolerance`].

use apoidea_crawl::{
    Extracted, extract,
    extract::{MAX_LINKS, reference},
};
use apoidea_model::PageUrl;
use rand::{Rng, RngExt, SeedableRng, rngs::StdRng};
use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

/// What of a difference is due to the tree builder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Tolerance {
    /// Nothing.
    None,
    /// Content directly inside a table is moved before it, so the order may differ.
    Order,
    /// Everything but frames is dropped from a page with `<frameset>`; content of a `<template>`
    /// that begins with a part of a table is dropped unless it fits there; MathML annotations are
    /// never HTML to this tree.
    Dropped,
}

impl Tolerance {
    fn of(body: &[u8]) -> Self {
        let lower = body.to_ascii_lowercase();
        let has = |text: &str| memchr::memmem::find(&lower, text.as_bytes()).is_some();
        if has("<frameset") || has("<template") || has("<annotation-xml") {
            Tolerance::Dropped
        } else if has("<table") {
            Tolerance::Order
        } else {
            Tolerance::None
        }
    }
}

/// Compares both ways of reading a page and says what had to be tolerated; the error shows the
/// difference.
fn compare(url: &PageUrl, body: &[u8]) -> Result<Tolerance, String> {
    let (mut ours, mut tree) = (
        extract(url, None, body),
        reference::extract(url, None, body),
    );
    if ours == tree {
        return Ok(Tolerance::None);
    }
    let tolerance = Tolerance::of(body);
    if tolerance != Tolerance::None && ours.links.len() < MAX_LINKS {
        ours.links.sort();
        tree.links.sort();
    }
    if tolerance == Tolerance::Dropped {
        ours.links.retain(|link| tree.links.contains(link));
        ours = Extracted {
            links: ours.links,
            ..tree.clone()
        };
    }
    if ours == tree {
        Ok(tolerance)
    } else {
        Err(difference(&ours, &tree))
    }
}

fn difference(ours: &Extracted, tree: &Extracted) -> String {
    let at = ours
        .links
        .iter()
        .zip(&tree.links)
        .take_while(|(a, b)| a == b)
        .count();
    format!(
        "links differ from number {at} on ({} and {}): {:?} and {:?}\n{:?}\n{:?}",
        ours.links.len(),
        tree.links.len(),
        ours.links.get(at),
        tree.links.get(at),
        Extracted {
            links: Vec::new(),
            ..ours.clone()
        },
        Extracted {
            links: Vec::new(),
            ..tree.clone()
        },
    )
}

/// Every `every`th page of the toolchain's documentation, as it would be found on the web.
fn documentation(every: usize) -> Vec<(PageUrl, PathBuf)> {
    let Some(root) = documentation_folder() else {
        eprintln!("skipped: the toolchain's HTML documentation is not installed");
        return Vec::new();
    };
    let mut files = Vec::new();
    collect(&root, &mut files);
    files.sort();
    let url = |file: &Path| {
        let path = file.strip_prefix(&root).ok()?.to_str()?;
        PageUrl::parse(&format!("https://doc.rust-lang.example/{path}")).ok()
    };
    files
        .into_iter()
        .step_by(every)
        .filter_map(|file| Some((url(&file)?, file)))
        .collect()
}

fn documentation_folder() -> Option<PathBuf> {
    let output = Command::new("rustc")
        .args(["--print", "sysroot"])
        .output()
        .ok()?;
    let sysroot = String::from_utf8(output.stdout).ok()?;
    let folder = Path::new(sysroot.trim()).join("share/doc/rust/html");
    folder.is_dir().then_some(folder)
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            collect(&path, files);
        } else if path
            .extension()
            .is_some_and(|extension| extension == "html")
        {
            files.push(path);
        }
    }
}

fn compare_documentation(every: usize) {
    let pages = documentation(every);
    let (mut links, mut tolerated) = (0, 0);
    for (url, file) in &pages {
        let body = fs::read(file).expect("a file that was just listed can be read");
        let tolerance =
            compare(url, &body).unwrap_or_else(|why| panic!("{}: {why}", file.display()));
        tolerated += usize::from(tolerance != Tolerance::None);
        links += extract(url, None, &body).links.len();
    }
    println!(
        "{} pages with {links} links: {tolerated} differ as a tree does, the others not at all",
        pages.len()
    );
}

#[test]
fn sample_of_the_documentation_gives_the_same() {
    compare_documentation(40);
}

#[test]
#[ignore = "48,000 pages take a minute in release mode"]
fn whole_documentation_gives_the_same() {
    compare_documentation(1);
}

#[test]
fn nasty_pages_give_the_same() {
    let url = PageUrl::parse("https://example.com/a/b?c").unwrap();
    let mut failures = Vec::new();
    for page in NASTY {
        if let Err(why) = compare(&url, page.as_bytes()) {
            failures.push(format!("{page}\n{why}"));
        }
    }
    assert!(
        failures.is_empty(),
        "{} pages:\n{}",
        failures.len(),
        failures.join("\n\n")
    );
}

const NASTY: &[&str] = &[
    // Tags and attributes.
    "<a href=x><A HREF=y><a\nhref\t=\r\n'z'><a/href=w><a href=v/>",
    "<a href=x href=y><a HREF='' href=y><a href><a href=>",
    "<a href=\"x>y\"><a href='x\"y'><a href=x\"y><a href=x'y><a href=`x`>",
    "<a title='>' href=x><a title=>href=y><a title='<a href=z>'>",
    "<a =href=x><a href==x><a href = = x><a ' href=x><a \" href=y><a '\"=x href=z>",
    "<a href=x<b><a href=y<a href=z>",
    "<a<b href=x><ab href=x><a-b href=x><a: href=x><a\0 href=x>",
    "< a href=x><a href=y",
    "<a href=x><a href='y>",
    "<a href=x\0y><a href='x\ry'><a hr\0ef=x>",
    "<a href=' x '><a href='\tx\ny'><a href='x #y'><a href='#'><a href=' #z'>",
    "<a href=x / rel=nofollow><a href=y rel='ugc NoFollow'><a href=z rel=nofollower>",
    "<a href=x rel rel=nofollow><area href=y rel=nofollow><area href=z>",
    "</a href=x><a href=y></a title='>'><a href=z>",
    // Character references.
    "<a href='?a&amp;b&lt;c&copy=1&copy;d&copyx&copy'><a href=?&#x26;&#38&#38;>",
    "<a href=&#106;avascript:x><a href='&#0;&#x110000;&#xd800;&#128;&#x0d;x'>",
    "<a href='&NotEqualTilde;&notin;&notit;&not;&not'><a href=x&amp><a href=x&#><a href=x&#x>",
    "<a href='a&#35;b'><a href='a&num;c'><a rel='no&#102;ollow' href=x>",
    "<title>a &amp; b &lt;c&gt; &copy d &notit;</title>",
    // Comments and declarations.
    "<!--<a href=x>--><a href=y><!--><a href=z><!---><a href=w>-->",
    "<!--a--!><a href=x><!----!><a href=y><!-- -- > <a href=n> --><a href=z>",
    "<!-- <!-- --> <a href=x> --><!--><!-- --><a href=y><!---!><a href=n>--><a href=z>",
    "<!a <a href=n>><a href=x><?a <a href=n>?><a href=y></ <a href=n>><a href=z></><a href=w>",
    "<!doctype html \"<a href=n>\"><a href=x><!DOCTYPE a '>'><a href=y>",
    "<![CDATA[<a href=x>]]><a href=y>",
    "<!-- never closed <a href=x>",
    "<!-",
    "<a href=x><!",
    "</",
    "<",
    // Raw text.
    "<script><a href=n></script><a href=x><script><!--<script></script><a href=n></script><a href=y>",
    "<script><!--<script></script>--></script><a href=x><script><!--></script><a href=y>",
    "<script></scripty><a href=n></script/x><a href=x></script><script></script ><a href=y>",
    "<SCRIPT></ScRiPt><a href=x><script/><a href=n></script><a href=y>",
    "<style><!--</style><a href=x>--><style></styl e></style\n><a href=y>",
    "<title><a href=n></title><a href=x><title></title>",
    "<textarea><a href=n></textarea><a href=x><xmp><a href=n></xmp><a href=y>",
    "<iframe src=f><a href=n></iframe><a href=x><noembed><a href=n></noembed><noframes><a href=n></noframes>",
    "<noscript><a href=n></noscript><a href=x><head><noscript><link rel=next href=n></noscript>",
    "<a href=x><plaintext><a href=n></plaintext><a href=n>",
    "<title>never closed <a href=n>",
    "<script>never closed <a href=n>",
    "<title/><a href=n></title><a href=x>",
    "</title><a href=x></script><a href=y>",
    // Foreign content.
    "<svg><title><a href=x></title><script><a href=y></script><style><a href=z></style></svg>",
    "<svg><![CDATA[<a href=n>]]><a href=x></svg><![CDATA[<a href=y>]]>",
    "<svg/><![CDATA[<a href=x>]]><title><a href=n></title>",
    "<svg><div><title><a href=n></title><a href=x>",
    "<svg><p></svg><title><a href=n></title><a href=x>",
    "<svg><foreignObject><title><a href=n></title><a href=x></foreignObject><title><a href=y></title></svg>",
    "<svg><desc><div></svg><title><a href=n></title></div></desc><![CDATA[<a href=n>]]><a href=x></svg>",
    "<svg><desc></svg><title><a href=n></title><a href=x>",
    "<svg><title><![CDATA[<a href=n>]]><title><a href=m></title></title></svg><a href=x>",
    "<svg><font><title><a href=x></title></font><font color=red><title><a href=n></title><a href=y>",
    "<svg></p><title><a href=n></title><a href=x>",
    "<div><svg><g></div><title><a href=n></title><a href=x>",
    "<math><mi><title><a href=n></title><a href=x></mi><title><a href=y></title></math>",
    "<math><mi><mglyph><title><a href=x></title></mglyph></mi></math><a href=y>",
    "<math><![CDATA[<a href=n>]]></math><title><a href=n></title>",
    "<svg><script/><a href=x></svg><script><a href=n></script>",
    "<svg><iframe src=n></iframe><link rel=next href=n><base href=/n/><area href=n><a href=x></svg>",
    "<svg><a href=x></a><a xlink:href=n></a></svg><svg><style>a{}</style></svg><style><a href=n></style><a href=y>",
    "<script></script><math></script><title><a href=x></title><a href=y>",
    "<head><math></head><title><a href=x></title></body></html><title><a href=y></title>",
    "<br><img><svg></img><title><a href=x></title>",
    "<svg><g></G></SVG><title><a href=n></title><a href=x>",
    "<svg><meta name=robots content=noindex><title>t</title>",
    // Base.
    "<a href=x><base href=/c/><base href=/d/><a href=y>",
    "<base><base href=c/><a href=x><base href=/d/>",
    "<base href='javascript:x'><a href=x>",
    "<base href='data:,x'><a href=x>",
    "<base href='http://['><a href=x>",
    "<base href='mailto:x'><a href=x><a href=http://e.example>",
    "<base href='//other.example'><a href=x><a href=?y><a href=#z>",
    "<base target=_top><base href=''><base href=/d/><a href=x>",
    // Other elements.
    "<link rel=next href=1><link rel='alternate stylesheet' href=n><link rel=ALTERNATE href=2><link rel=stylesheet href=n>",
    "<link rel=canonical href=''><link rel=canonical href=/c><link rel=canonical href=/d><link href=n>",
    "<body><link rel='canonical nofollow' href=n><link rel=prev href=n><link rel=canonical href='mailto:x'>",
    "<meta http-equiv=Refresh content='0; url=/r'><meta http-equiv=refresh content=5><meta content='0;/n'>",
    "<meta name=robots content=noindex><meta name=Apoidea content='NoFollow'><meta name=googlebot content=noarchive>",
    "<html lang=' de '><html lang=en><body><title> a\n b </title><title>c</title>",
    "<html><html lang=en><p>",
    "<body><html lang=''><html lang=fr>",
    "<iframe src=''></iframe><iframe src=about:blank></iframe><iframe src=f></iframe>",
    "<a href=mailto:x@y><a href=tel:1><a href=ftp://x/><a href=HTTP://E.example:80/%7e><a href=http://u@e.example>",
    "<a href=//e.example><a href=/\\e.example/x><a href=\\\\e.example/y><a href=?q><a href=..><a href=%2e%2e/%2E/x>",
    // Trees that differ from their source.
    "<a href=1><p><a href=2><b><a href=3></b></a></p><div><a href=4>",
    "<table><a href=1><tr><td><a href=2></table><a href=3>",
    "<select><a href=1><option><a href=2></select><a href=3>",
    "<select><title><a href=n></title><textarea><a href=n></textarea><a href=x>",
    "<table><title><a href=n></title><script><a href=n></script><style><a href=n></style><a href=x></table>",
    "<button><a href=1><button><a href=2><nobr><a href=3><nobr><form><form><a href=4>",
    "<head></head><link rel=next href=1><body></body></html><a href=2></body><a href=3>",
    "<template><a href=1></template><template><td><a href=2></template><a href=3>",
    "<frameset><a href=n><frame src=n></frameset><noframes><a href=n></noframes>",
    "<p><frameset><a href=1>",
    "<h1><a href=1><h2><li><a href=2><dd><dt><a href=3></p></br></h1><a href=4>",
];

#[test]
fn broken_pages_give_the_same() {
    let pages: Vec<_> = documentation(700)
        .into_iter()
        .map(|(url, file)| (url, fs::read(file).unwrap()))
        .collect();
    break_pages(&pages, 4, 1);
}

#[test]
#[ignore = "200,000 broken pages take minutes in release mode"]
fn many_broken_pages_give_the_same() {
    let pages: Vec<_> = documentation(100)
        .into_iter()
        .map(|(url, file)| (url, fs::read(file).unwrap()))
        .collect();
    break_pages(&pages, 400, 2);
}

#[test]
fn broken_nasty_pages_give_the_same() {
    let url = PageUrl::parse("https://example.com/a/b?c").unwrap();
    let pages: Vec<_> = NASTY
        .iter()
        .map(|page| (url.clone(), page.as_bytes().to_vec()))
        .collect();
    break_pages(&pages, 50, 3);
}

fn break_pages(pages: &[(PageUrl, Vec<u8>)], times: u64, seed: u64) {
    let mut tolerated = 0;
    for (number, (url, body)) in pages.iter().enumerate() {
        for time in 0..times {
            let mut rng = StdRng::seed_from_u64(seed << 40 | (number as u64) << 20 | time);
            let mut broken = body[..body.len().min(20_000)].to_vec();
            for _ in 0..rng.random_range(1..6) {
                break_page(&mut broken, &mut rng);
            }
            match compare(url, &broken) {
                Ok(tolerance) => tolerated += usize::from(tolerance != Tolerance::None),
                Err(why) => {
                    let text = String::from_utf8_lossy(&broken);
                    panic!("seed {seed}, {url}, page {number}, time {time}: {why}\n{text}");
                }
            }
        }
    }
    println!(
        "{} broken pages: {tolerated} differ as a tree does",
        pages.len() as u64 * times
    );
}

/// Pieces that change how what follows is read.
const SPLICES: &[&str] = &[
    "<",
    ">",
    "\"",
    "'",
    "=",
    "/",
    "&",
    "<!--",
    "-->",
    "--!>",
    "<script>",
    "</script>",
    "<style>",
    "</style>",
    "<title>",
    "</title>",
    "<textarea>",
    "</textarea>",
    "<svg>",
    "</svg>",
    "<math>",
    "</math>",
    "<![CDATA[",
    "]]>",
    "<a href=spliced>",
    "</a>",
    "<p>",
    "</p>",
    "<div>",
    "</div>",
    "<b>",
    "</b>",
    "<table>",
    "</table>",
    "<noscript>",
    "<base href=/b/>",
    "<!",
    "</",
    "<?",
    "\0",
    "\r",
    "&amp",
    "&#x26",
    "<iframe src=f>",
    "</iframe>",
    "<select>",
];

fn break_page(page: &mut Vec<u8>, rng: &mut impl Rng) {
    let at = rng.random_range(0..=page.len());
    let end = (at + rng.random_range(0..200)).min(page.len());
    match rng.random_range(0..5) {
        0 => page.truncate(at.max(page.len() / 2)),
        1 => drop(page.drain(at..end)),
        2 => {
            let copy = page[at..end].to_vec();
            let to = rng.random_range(0..=page.len());
            page.splice(to..to, copy);
        }
        3 => {
            if let Some(byte) = page.get_mut(at) {
                *byte = rng.random();
            }
        }
        _ => {
            let piece = SPLICES[rng.random_range(0..SPLICES.len())];
            page.splice(at..at, piece.bytes());
        }
    }
}
