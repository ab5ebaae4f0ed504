//! What an answer means: a page, a redirect, a request to slow down, a failure. Always data, never
//! an error.

use crate::fetcher::{FetchError, Response};
use apoidea_crawl::{Failure, Outcome, retry_after};
use apoidea_model::{PageUrl, Target, Time};
use reqwest::header::{CONTENT_TYPE, HeaderMap, LOCATION, RETRY_AFTER};
use std::time::Duration;

/// Judges the answer to a request for `url`.
pub fn judge(
    url: &PageUrl,
    target: Target,
    answer: &Result<Response, FetchError>,
    now: Time,
) -> Outcome {
    match answer {
        Ok(response) => judge_response(url, target, response, now),
        Err(error) => Outcome::Failed(failure(error)),
    }
}

/// What `Retry-After` asks for.
pub fn wait_asked_for(headers: &HeaderMap, now: Time) -> Option<Duration> {
    retry_after(headers.get(RETRY_AFTER)?.to_str().ok()?, now)
}

/// The page that a redirect leads to.
pub fn redirect_target(url: &PageUrl, headers: &HeaderMap) -> Option<PageUrl> {
    // Servers send UTF-8 here although they should not.
    let location = std::str::from_utf8(headers.get(LOCATION)?.as_bytes()).ok()?;
    url.join(location).ok()
}

fn judge_response(url: &PageUrl, target: Target, response: &Response, now: Time) -> Outcome {
    let headers = &response.headers;
    if is_challenge(response) {
        return Outcome::Challenge;
    }
    match response.status {
        304 => Outcome::NotModified,
        300..=399 => match redirect_target(url, headers) {
            Some(to) if to == *url => Outcome::Failed(Failure::TooManyRedirects),
            Some(to) => Outcome::Redirect(to),
            None => Outcome::Refused(response.status),
        },
        429 | 503 => Outcome::Throttled {
            retry_after: wait_asked_for(headers, now),
        },
        200..=299 if target == Target::Page && !is_page(headers) => {
            Outcome::Failed(Failure::UnsupportedType)
        }
        200..=299 => Outcome::Page,
        500..=599 => Outcome::Failed(Failure::Server),
        status => Outcome::Refused(status),
    }
}

/// HTML by its type, or of no type at all, as browsers take it.
pub fn is_page(headers: &HeaderMap) -> bool {
    let Some(content_type) = headers
        .get(CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
    else {
        return true;
    };
    let essence = content_type.split(';').next().unwrap_or_default().trim();
    ["text/html", "application/xhtml+xml", ""]
        .iter()
        .any(|html| essence.eq_ignore_ascii_case(html))
        || is_feed(headers)
}

/// Whether a body is a feed, that is, a list of pages.
pub fn is_feed(headers: &HeaderMap) -> bool {
    let content_type = headers.get(CONTENT_TYPE);
    let content_type = content_type.and_then(|value| value.to_str().ok());
    let essence = content_type.and_then(|text| text.split(';').next());
    ["application/rss+xml", "application/atom+xml"]
        .iter()
        .any(|feed| essence.is_some_and(|essence| essence.trim().eq_ignore_ascii_case(feed)))
}

/// Pages that ask for a human instead of answering: the marks of the common shields.
fn is_challenge(response: &Response) -> bool {
    const MARKS: [&[u8]; 4] = [
        b"<title>Just a moment...</title>",
        b"challenge-platform",
        b"g-recaptcha",
        b"h-captcha",
    ];
    let says_so = response
        .headers
        .get("cf-mitigated")
        .is_some_and(|value| value == "challenge");
    let start = &response.raw_body[..response.raw_body.len().min(16 << 10)];
    let is_marked = MARKS
        .iter()
        .any(|mark| memchr::memmem::find(start, mark).is_some());
    says_so || (matches!(response.status, 401 | 403 | 429 | 503) && is_marked)
}

fn failure(error: &FetchError) -> Failure {
    match error {
        FetchError::Refused(_) => Failure::PrivateAddress,
        FetchError::Connect(_) => Failure::Connect,
        FetchError::Tls(_) => Failure::Tls,
        FetchError::Read(_) => Failure::Read,
        FetchError::Timeout | FetchError::Paused => Failure::Timeout,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        body::Extent,
        body_memory::BodyMemory,
        request::{RequestHead, Wanted},
    };
    use futures::FutureExt;
    use std::sync::Arc;

    fn response(
        status: u16,
        headers: &[(&'static str, &'static str)],
        body: &'static str,
    ) -> Response {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.insert(*name, value.parse().unwrap());
        }
        Response {
            status,
            headers: map,
            raw_body: body.into(),
            extent: Extent::Whole,
            address: [127, 0, 0, 1].into(),
            elapsed: Duration::ZERO,
            request: RequestHead::default(),
            holding: Arc::<BodyMemory>::default()
                .enter(Wanted::Page)
                .now_or_never()
                .unwrap(),
        }
    }

    fn outcome(
        status: u16,
        headers: &[(&'static str, &'static str)],
        body: &'static str,
    ) -> Outcome {
        let url = PageUrl::parse("http://a.test/x/y").unwrap();
        judge(
            &url,
            Target::Page,
            &Ok(response(status, headers, body)),
            Time::ZERO,
        )
    }

    #[test]
    fn each_status_has_its_meaning() {
        assert_eq!(
            outcome(200, &[("content-type", "Text/HTML; charset=x")], ""),
            Outcome::Page
        );
        assert_eq!(outcome(200, &[], ""), Outcome::Page);
        assert_eq!(
            outcome(200, &[("content-type", "image/png")], ""),
            Outcome::Failed(Failure::UnsupportedType)
        );
        assert_eq!(outcome(304, &[], ""), Outcome::NotModified);
        assert_eq!(outcome(404, &[], ""), Outcome::Refused(404));
        assert_eq!(outcome(500, &[], ""), Outcome::Failed(Failure::Server));
        let wait = Some(Duration::from_secs(120));
        assert_eq!(
            outcome(503, &[("retry-after", "120")], ""),
            Outcome::Throttled { retry_after: wait }
        );
        assert_eq!(
            outcome(429, &[], ""),
            Outcome::Throttled { retry_after: None }
        );
    }

    #[test]
    fn redirects_become_new_urls_or_failures() {
        let to = PageUrl::parse("http://a.test/z").unwrap();
        assert_eq!(
            outcome(301, &[("location", "../z#top")], ""),
            Outcome::Redirect(to)
        );
        assert_eq!(
            outcome(302, &[("location", "y")], ""),
            Outcome::Failed(Failure::TooManyRedirects)
        );
        assert_eq!(
            outcome(302, &[("location", "mailto:a@b")], ""),
            Outcome::Refused(302)
        );
        assert_eq!(outcome(302, &[], ""), Outcome::Refused(302));
    }

    #[test]
    fn a_page_that_wants_to_see_a_human_is_a_challenge() {
        assert_eq!(
            outcome(200, &[("cf-mitigated", "challenge")], ""),
            Outcome::Challenge
        );
        assert_eq!(
            outcome(403, &[], "<html><title>Just a moment...</title>"),
            Outcome::Challenge
        );
        assert_eq!(
            outcome(200, &[], "an article about <i>g-recaptcha</i>"),
            Outcome::Page
        );
    }
}
