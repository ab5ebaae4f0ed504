//! robots.txt as site owners expect it to be read: the RFC's examples, the cases that Google's
//! open-source parser is tested with, and random files against a matcher that is too simple to be
//! wrong.

use apoidea_crawl::Robots;
use proptest::prelude::*;
use std::time::Duration;

fn allowed(file: &str, agent: &str, path: &str) -> bool {
    Robots::parse(file.as_bytes(), agent).decide(path).allowed
}

/// Checks one file for many agents and paths.
fn expect(file: &str, cases: &[(&str, &str, bool)]) {
    for &(agent, path, expected) in cases {
        assert_eq!(
            allowed(file, agent, path),
            expected,
            "{agent} at {path} under\n{file}"
        );
    }
}

/// Checks rules for everyone on many paths.
fn expect_rules(rules: &str, cases: &[(&str, bool)]) {
    for &(path, expected) in cases {
        let file = format!("User-agent: *\n{rules}");
        assert_eq!(
            allowed(&file, "Apoidea", path),
            expected,
            "{path} under\n{file}"
        );
    }
}

#[test]
fn the_simple_example_of_the_rfc() {
    let file = "User-Agent: *\nDisallow: *.gif$\nDisallow: /example/\nAllow: /publications/\n\n\
                User-Agent: foobot\nDisallow:/\nAllow:/example/page.html\nAllow:/example/allowed.gif\n\n\
                User-Agent: barbot\nUser-Agent: bazbot\nDisallow: /example/page.html\n\n\
                User-Agent: quxbot\n\nEOF";
    expect(
        file,
        &[
            ("otherbot", "/a/b.gif", false),
            ("otherbot", "/example/", false),
            ("otherbot", "/publications/", true),
            ("otherbot", "/publications/x.gif", true),
            ("foobot", "/", false),
            ("foobot", "/example/page.html", true),
            ("foobot", "/example/allowed.gif", true),
            ("barbot", "/example/page.html", false),
            ("bazbot", "/example/page.html", false),
            ("bazbot", "/example/", true),
            ("quxbot", "/example/", true),
            ("quxbot", "/a.gif", true),
        ],
    );
}

#[test]
fn the_longest_match_example_of_the_rfc() {
    let rules = "Allow: /example/page/\nDisallow: /example/page/disallowed.gif";
    expect_rules(
        rules,
        &[
            ("/example/page/", true),
            ("/example/page/disallowed.gif", false),
        ],
    );
}

#[test]
fn the_special_characters_of_the_rfc() {
    expect_rules(
        "Disallow: /this/path/exactly$",
        &[("/this/path/exactly", false), ("/this/path/exactly/", true)],
    );
    expect_rules(
        "Disallow: /this/*/exactly",
        &[("/this/is/it/exactly", false), ("/this/exactly", true)],
    );
    expect_rules(
        "Disallow: /path/file-with-a-%2A.html",
        &[
            ("/path/file-with-a-*.html", false),
            ("/path/file-with-a-%2a.html", false),
            ("/path/file-with-a-b.html", true),
        ],
    );
    expect_rules(
        "Disallow: /path/foo-%24",
        &[("/path/foo-$", false), ("/path/foo-", true)],
    );
}

#[test]
fn groups_of_the_same_agent_are_merged() {
    let file = "user-agent: ExampleBot\ndisallow: /foo\ndisallow: /bar\n\nuser-agent: other\nallow: /\n\n\
                user-agent: EXAMPLEBOT\ndisallow: /baz";
    for path in ["/foo", "/bar", "/baz"] {
        assert!(!allowed(file, "examplebot", path), "{path}");
    }
    assert!(allowed(file, "examplebot", "/"));
}

#[test]
fn lines_need_a_known_name_and_forgive_the_separator() {
    let no = [("FooBot", "/x/y", false)];
    let yes = [("FooBot", "/x/y", true)];
    expect("user-agent: FooBot\ndisallow: /\n", &no);
    expect("foo: FooBot\nbar: /\n", &yes);
    expect("user-agent FooBot\ndisallow /\n", &no);
    expect("user-agent: FooBot\nDISALLOW:/ # all\n", &no);
    expect("uSeR-aGeNt : FooBot\n  dIsAlLoW :  /  \n", &no);
    expect("disallow: /\nuser-agent: FooBot\n", &yes);
    expect("", &yes);
    expect("user-agent: FooBot\ndisallow:\n", &yes);
}

#[test]
fn several_agents_share_a_group_until_a_rule_ends_its_head() {
    let file = "allow: /foo/bar/\n\nuser-agent: FooBot\ndisallow: /\nallow: /x/\nuser-agent: BarBot\ndisallow: /\n\
                allow: /y/\n\n\nallow: /w/\nuser-agent: BazBot\n\nuser-agent: FooBot\nallow: /z/\ndisallow: /\n";
    expect(
        file,
        &[
            ("FooBot", "/x/b", true),
            ("FooBot", "/z/d", true),
            ("FooBot", "/y/c", false),
            ("BarBot", "/y/c", true),
            ("BarBot", "/w/a", true),
            ("BarBot", "/z/d", false),
            ("BazBot", "/z/d", true),
            ("FooBot", "/foo/bar/", false),
            ("BarBot", "/foo/bar/", false),
            ("BazBot", "/foo/bar/", false),
        ],
    );
}

#[test]
fn other_lines_do_not_end_a_group() {
    for other in [
        "Sitemap: https://foo.example/sitemap",
        "Invalid-Unknown-Line: unknown",
        "Crawl-delay: 3",
    ] {
        let file = format!("User-agent: BarBot\n{other}\nUser-agent: *\nDisallow: /\n");
        expect(&file, &[("FooBot", "/", false), ("BarBot", "/", false)]);
        let file = format!("User-agent: FooBot\nDisallow: /a\n{other}\nDisallow: /b\n");
        expect(&file, &[("FooBot", "/a", false), ("FooBot", "/b", false)]);
    }
}

#[test]
fn only_the_product_token_of_an_agent_counts() {
    let file = |agent: &str| {
        format!("User-Agent: *\nDisallow: /\nUser-Agent: {agent}\nAllow: /x/\nDisallow: /")
    };
    for agent in [
        "Foo",
        "foo",
        "FOO",
        "Foo/1.0",
        "Foo Bar",
        "Foo/2 (+http://foo.example)",
        "Foo; x",
        "foo9",
    ] {
        assert!(allowed(&file(agent), "Foo", "/x/y"), "{agent}");
        assert!(allowed(&file("Foo"), agent, "/x/y"), "{agent} as ours");
    }
    for agent in ["Foo-Bar", "Foo_", "Fo", "XFoo", "*Foo", "9Foo", "/Foo", ""] {
        assert!(!allowed(&file(agent), "Foo", "/x/y"), "{agent}");
    }
    assert!(
        !allowed(
            "User-agent:\nAllow: /x\nUser-agent: *\nDisallow: /",
            "",
            "/x"
        ),
        "no name is nobody's"
    );
}

#[test]
fn everyone_is_the_fallback_only() {
    let named = "user-agent: *\nallow: /\nuser-agent: FooBot\ndisallow: /\n";
    expect(named, &[("FooBot", "/x", false), ("BarBot", "/x", true)]);
    let after = "user-agent: FooBot\nallow: /\nuser-agent: BarBot\ndisallow: /\nuser-agent: BazBot\ndisallow: /\n";
    expect(
        after,
        &[
            ("FooBot", "/", true),
            ("BarBot", "/", false),
            ("QuxBot", "/", true),
        ],
    );
    expect(
        "user-agent: * baz\ndisallow: /\n",
        &[("FooBot", "/", false)],
    );
    expect(
        "user-agent: FooBot\nuser-agent: *\ndisallow: /x\n",
        &[("FooBot", "/x", false), ("Y", "/x", false)],
    );
    expect(
        "user-agent: *\ndisallow: /\nuser-agent: FooBot\n",
        &[("FooBot", "/", true)],
    );
}

#[test]
fn paths_are_case_sensitive_and_match_from_their_start() {
    expect_rules(
        "Disallow: /x/",
        &[
            ("/x/y", false),
            ("/X/y", true),
            ("/a/x/", true),
            ("/x", true),
        ],
    );
    expect_rules(
        "Disallow: /fish",
        &[
            ("/fish", false),
            ("/fish.html", false),
            ("/fishheads/yummy.html", false),
            ("/fish.php?id=anything", false),
            ("/Fish.asp", true),
            ("/catfish", true),
            ("/?id=fish", true),
        ],
    );
    expect_rules(
        "Disallow: /*.php$",
        &[
            ("/filename.php", false),
            ("/folder/filename.php", false),
            ("/filename.php?parameters", true),
            ("/filename.php/", true),
            ("/windows.PHP", true),
        ],
    );
    expect_rules(
        "Disallow: /fish*.php",
        &[
            ("/fish.php", false),
            ("/fishheads/catfish.php?p", false),
            ("/Fish.PHP", true),
        ],
    );
    expect_rules("Disallow: x", &[("/x", true), ("/", true)]);
    expect_rules("Disallow: https://a.example/x", &[("/x", true)]);
}

#[test]
fn the_longest_pattern_wins_and_a_tie_allows() {
    expect_rules(
        "disallow: /x/page.html\nallow: /x/",
        &[("/x/page.html", false), ("/x/", true)],
    );
    expect_rules(
        "allow: /x/page.html\ndisallow: /x/",
        &[("/x/page.html", true), ("/x/", false)],
    );
    expect_rules("disallow: /page\nallow: /page", &[("/page", true)]);
    expect_rules(
        "allow: /page\ndisallow: /*.html",
        &[("/page.html", false), ("/page", true)],
    );
    expect_rules(
        "allow: /x/page.\ndisallow: /*.html",
        &[("/x/page.html", true), ("/x/y.html", false)],
    );
    expect_rules(
        "allow: /$\ndisallow: /",
        &[("/", true), ("/page.html", false)],
    );
    expect_rules("allow: /p\ndisallow: /", &[("/page", true)]);
    expect_rules(
        "allow: /folder\ndisallow: /folder",
        &[("/folder/page", true)],
    );
}

#[test]
fn encodings_are_compared_in_one_form() {
    let rules = "Disallow: /\nAllow: /foo/bar?qux=taz&baz=http://foo.bar?tar&par";
    expect_rules(
        rules,
        &[("/foo/bar?qux=taz&baz=http://foo.bar?tar&par", true)],
    );
    for written in ["/foo/bar/ツ", "/foo/bar/%E3%83%84", "/foo/bar/%e3%83%84"] {
        expect_rules(
            &format!("Disallow: /\nAllow: {written}"),
            &[("/foo/bar/%E3%83%84", true), ("/foo/bar/ツ", true)],
        );
    }
    expect_rules(
        "Disallow: /\nAllow: /foo/bar/%62%61%7A",
        &[("/foo/bar/baz", true), ("/foo/bar/%62%61%7A", true)],
    );
    expect_rules(
        "Disallow: /a%3cd.html",
        &[("/a%3Cd.html", false), ("/a<d.html", false)],
    );
    expect_rules(
        "Disallow: /a%2fb.html",
        &[("/a%2fb.html", false), ("/a/b.html", true)],
    );
    expect_rules(
        "Disallow: /%7ejoe/",
        &[("/~joe/index.html", false), ("/%7Ejoe/", false)],
    );
}

#[test]
fn line_ends_marks_and_comments_do_not_matter() {
    let lines = [
        "\u{feff}User-Agent: foo",
        "Allow: /some/path # yes",
        "# User-Agent: bar",
        "",
        "Disallow: /",
    ];
    for end in ["\n", "\r", "\r\n"] {
        let file = lines.join(end);
        expect(
            &file,
            &[("foo", "/some/path", true), ("foo", "/other", false)],
        );
        let robots = Robots::parse(file.as_bytes(), "foo");
        let rule = robots.decide("/other").rule.unwrap();
        assert_eq!((rule.line(), rule.to_string().as_str()), (5, "Disallow: /"));
    }
}

#[test]
fn the_deciding_line_is_named() {
    let robots = Robots::parse(b"User-agent: *\n\nallow: /caf\xc3\xa9\nDisallow: /c*", "x");
    let line = |path| {
        robots
            .decide(path)
            .rule
            .map(|rule| format!("{} {rule}", rule.line()))
    };
    assert_eq!(line("/café/x").as_deref(), Some("3 Allow: /caf%C3%A9"));
    assert_eq!(line("/c").as_deref(), Some("4 Disallow: /c*"));
    assert_eq!(line("/d"), None);
}

#[test]
fn robots_txt_itself_is_always_allowed() {
    expect_rules(
        "Disallow: /",
        &[
            ("/robots.txt", true),
            ("/robots.txt.old", false),
            ("", false),
        ],
    );
}

#[test]
fn delays_belong_to_a_group_and_are_bounded() {
    let delay = |file: &str| Robots::parse(file.as_bytes(), "Foo").crawl_delay();
    let seconds = |seconds| Some(Duration::from_secs_f64(seconds));
    assert_eq!(delay("User-agent: *\nCrawl-delay: 2.5"), seconds(2.5));
    assert_eq!(delay("User-agent: *\nCrawl-delay: 86400"), seconds(300.0));
    assert_eq!(
        delay("User-agent: *\nCrawl-delay: 5\n\nUser-agent: Foo\nDisallow: /x"),
        None
    );
    assert_eq!(
        delay("User-agent: Foo\nCrawl-delay: 5\nUser-agent: foo\nCrawl-delay: 3"),
        seconds(5.0)
    );
    for nothing in [
        "Crawl-delay: 5",
        "User-agent: Bar\nCrawl-delay: 5",
        "User-agent: *\nCrawl-delay: -5",
    ] {
        assert_eq!(delay(nothing), None, "{nothing}");
    }
}

#[test]
fn sitemaps_are_for_everyone() {
    let file = "Sitemap: https://a.example/1.xml\nUser-agent: Bar\nSITEMAP: https://b.example/2.xml\nDisallow: /\n\
                Sitemap: /relative.xml\nsitemap: https://a.example/1.xml";
    let robots = Robots::parse(file.as_bytes(), "Foo");
    let sitemaps: Vec<_> = robots.sitemaps().iter().map(|url| url.as_str()).collect();
    assert_eq!(
        sitemaps,
        ["https://a.example/1.xml", "https://b.example/2.xml"]
    );
    let many: String = (0..500)
        .map(|i| format!("Sitemap: https://a.example/{i}\n"))
        .collect();
    assert_eq!(
        Robots::parse(many.as_bytes(), "Foo").sitemaps().len(),
        Robots::MAX_SITEMAPS
    );
}

#[test]
fn half_a_mebibyte_is_read_and_no_more() {
    let mut file = String::from("User-agent: *\n");
    while file.len() < Robots::MAX_BYTES - 100 {
        file.push_str("Disallow: /a-rule-among-very-many\n");
    }
    file.push_str("Disallow: /within\n");
    file.push_str(&"#".repeat(200));
    file.push_str("\nDisallow: /beyond\n");
    expect(
        &file,
        &[
            ("x", "/within", false),
            ("x", "/beyond", true),
            ("x", "/a-rule-among-very-many", false),
        ],
    );
}

#[test]
fn too_many_wildcards_refuse_more_and_allow_less() {
    let mut file = String::from("User-agent: *\n");
    for i in 0..Robots::MAX_WILDCARD_RULES {
        file.push_str(&format!("Disallow: /kept/{i}*x\n"));
    }
    file.push_str("Disallow: /cut/*x\nAllow: /cut/*y\nAllow: /cut/plain\nDisallow: /plain\n");
    expect(
        &file,
        &[
            ("x", "/kept/7", true),
            ("x", "/kept/7/x", false),
            ("x", "/cut/without", false),
            ("x", "/cut/with/y", false),
            ("x", "/cut/plain", true),
            ("x", "/plain", false),
        ],
    );
}

#[test]
fn a_pattern_too_long_for_any_url_is_not_kept() {
    let file = format!(
        "User-agent: *\nDisallow: /{}",
        "x".repeat(Robots::MAX_PATTERN_BYTES)
    );
    assert_eq!(Robots::parse(file.as_bytes(), "x").rules(), []);
}

#[test]
fn a_rule_that_is_said_twice_is_kept_once() {
    let file = b"User-agent: *\nDisallow: /a\nAllow: /a\nDisallow: /b\nDisallow: /%61";
    let robots = Robots::parse(file, "Foo");
    let lines: Vec<_> = robots.rules().iter().map(|rule| rule.line()).collect();
    assert_eq!(lines, [3, 2, 4]);
}

#[test]
fn it_can_be_stored_and_sent() {
    let file =
        b"User-agent: *\nDisallow: /x\nAllow: /x/y\nCrawl-delay: 1.5\nSitemap: https://a.example/s.xml";
    let robots = Robots::parse(file, "Foo");
    let bytes = postcard::to_stdvec(&robots).unwrap();
    assert!(bytes.len() < file.len(), "{} bytes", bytes.len());
    assert_eq!(postcard::from_bytes::<Robots>(&bytes).unwrap(), robots);
}

/// The definition of a pattern, without a thought for speed.
fn naive_match(pattern: &[u8], path: &[u8]) -> bool {
    match pattern {
        [] => true,
        [b'$'] => path.is_empty(),
        [b'*', rest @ ..] => (0..=path.len()).any(|skip| naive_match(rest, &path[skip..])),
        [first, rest @ ..] => path
            .split_first()
            .is_some_and(|(b, path)| b == first && naive_match(rest, path)),
    }
}

fn naive_decision(rules: &[(bool, String)], path: &str) -> bool {
    let matching = rules
        .iter()
        .filter(|(_, pattern)| naive_match(pattern.as_bytes(), path.as_bytes()));
    matching
        .map(|(allow, pattern)| (pattern.len(), *allow))
        .max()
        .is_none_or(|(_, allow)| allow)
}

proptest! {
    #[test]
    fn matching_agrees_with_the_definition(
        rules in prop::collection::vec((any::<bool>(), r"/[ab*/]{0,8}[$]?"), 0..6),
        paths in prop::collection::vec("/[ab/]{0,10}", 1..8),
    ) {
        let name = |allow: &bool| if *allow { "Allow" } else { "Disallow" };
        let lines: Vec<_> = rules.iter().map(|(allow, pattern)| format!("{}: {pattern}", name(allow))).collect();
        let file = format!("User-agent: *\n{}", lines.join("\n"));
        for path in paths {
            prop_assert_eq!(allowed(&file, "x", &path), naive_decision(&rules, &path), "{} under\n{}", path, file);
        }
    }

    #[test]
    fn no_bytes_are_too_odd(file in prop::collection::vec(any::<u8>(), 0..300), path in "\\PC{0,40}") {
        let _ = Robots::parse(&file, "x").decide(&path);
        let file = [b"User-agent: *\nDisallow: /", &file[..]].concat();
        let robots = Robots::parse(&file, "x");
        let verdict = robots.decide(&path);
        prop_assert_eq!(verdict.allowed, verdict.rule.is_none_or(|rule| rule.to_string().starts_with("Allow")));
    }

    #[test]
    fn shuffled_fields_are_never_too_odd(
        lines in prop::collection::vec("(User-agent|Allow|Disallow|Crawl-delay|Sitemap|x)[: ]{0,2}[*/$%a-c0-9.?é]{0,12}[\r\n]{0,2}", 0..20),
        path in "/[a-c0-9%?$*é]{0,12}",
    ) {
        let robots = Robots::parse(lines.concat().as_bytes(), "a");
        prop_assert!(robots.crawl_delay() <= Some(Robots::MAX_CRAWL_DELAY));
        prop_assert!(robots.decide("/robots.txt").allowed);
        let verdict = robots.decide(&path);
        prop_assert!(verdict.allowed || verdict.rule.is_some());
    }
}
