//! Sitemaps in every form, with pages that nothing else links to (sitemaps.org protocol).

use super::{Ground, encodings::gzip};
use crate::{reply::Reply, site::Site, truth::Fate};

fn urls(origin: &str, paths: &[&str]) -> String {
    let items: String = paths
        .iter()
        .map(|path| format!("  <url><loc>{}</loc></url>\n", absolute(origin, path)))
        .collect();
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<urlset xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\">\n{items}</urlset>\n"
    )
}

fn index(origin: &str, paths: &[&str]) -> String {
    let items: String = paths
        .iter()
        .map(|path| {
            format!(
                "  <sitemap><loc>{}</loc></sitemap>\n",
                absolute(origin, path)
            )
        })
        .collect();
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<sitemapindex xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\">\n{items}</sitemapindex>\n"
    )
}

fn absolute(origin: &str, path: &str) -> String {
    if path.starts_with('/') {
        format!("{origin}{}", path.replace('&', "&amp;"))
    } else {
        path.to_owned()
    }
}

/// `sitemaps`: robots.txt names an index and a text file; the index names a plain and a packed
/// sitemap. One entry leads into a private network.
pub(super) fn all(ground: &Ground) -> Vec<Site> {
    let origin = ground.origin("sitemaps");
    let honeypot = ground.honeypots.first().map_or(String::new(), |address| {
        format!("http://{address}/honeypot")
    });
    let robots = format!(
        "User-agent: *\nDisallow: /no\nSitemap: {origin}/index.xml\nsitemap: {origin}/list.txt\n"
    );
    let xml = |text: String| Reply::new(200, "application/xml", text);
    let plain = urls(&origin, &["/in-xml", "/in-xml?a=1&b=2", "/no", &honeypot]);
    let packed = gzip(urls(&origin, &["/in-gzip"]).as_bytes());
    let list = format!("{origin}/in-text\n\n{origin}/no\nnonsense\n");
    let site = ground
        .site("sitemaps")
        .robots(Reply::new(200, "text/plain", robots))
        .home(&[])
        .page(
            "/index.xml",
            Fate::Visit,
            xml(index(&origin, &["/plain.xml", "/packed.xml.gz"])),
        )
        .page("/plain.xml", Fate::Visit, xml(plain))
        .page(
            "/packed.xml.gz",
            Fate::Visit,
            Reply::new(200, "application/gzip", packed),
        )
        .page(
            "/list.txt",
            Fate::Visit,
            Reply::new(200, "text/plain", list),
        );
    vec![
        site.leaves(&["/in-xml", "/in-xml?a=1&b=2", "/in-gzip", "/in-text"])
            .forbidden(&["/no"]),
    ]
}
