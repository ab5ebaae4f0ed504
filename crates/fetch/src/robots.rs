//! Fetching a robots.txt, redirects included.

use crate::{
    body,
    fetcher::{FetchError, Fetcher, MAX_BODY_BYTES, PRODUCT_TOKEN, Response},
    judge,
    request::WebRequest,
    resolver::Resolver,
};
use apoidea_crawl::{Access, Connection, Effort};
use apoidea_model::{PageUrl, Time};
use reqwest::header::CONTENT_ENCODING;
use std::{net::IpAddr, time::Duration};

/// Redirects that are followed; RFC 9309 §2.3.1.2 asks for at least five.
const MAX_REDIRECTS: usize = 5;

/// What a site allows, and what it took to find out.
#[derive(Debug)]
pub struct RobotsAnswer {
    /// The rules.
    pub access: Access,
    /// What `Retry-After` asked for.
    pub retry_after: Option<Duration>,
    /// The effort of the host whose rules they are; hops to other hosts are those hosts'.
    pub effort: Effort,
}

/// A pause came before the request was sent.
#[derive(Debug)]
pub struct Paused;

/// Fetches `url` from `address` and follows its redirects, also to other hosts, each of which waits
/// its turn at the gate.
pub async fn fetch(
    fetcher: &Fetcher,
    resolver: &Resolver,
    url: &PageUrl,
    address: IpAddr,
    connection: Connection,
    now: Time,
) -> Result<RobotsAnswer, Paused> {
    let mut effort = Effort {
        took: Duration::ZERO,
        bytes: 0,
    };
    let (mut at, mut address) = (url.clone(), address);
    for _ in 0..=MAX_REDIRECTS {
        let request = WebRequest::of_file(at.clone(), address, connection);
        let response = match fetcher.get(&request).await {
            Ok(response) => response,
            Err(FetchError::Paused) => return Err(Paused),
            Err(_) => {
                return Ok(RobotsAnswer {
                    access: Access::of_failure(),
                    retry_after: None,
                    effort,
                });
            }
        };
        if at.host() == url.host() {
            effort = Effort {
                took: response.elapsed,
                bytes: effort.bytes + response.raw_body.len() as u64,
            };
        }
        let is_redirect = matches!(response.status, 300..=399);
        let Some(to) = judge::redirect_target(&at, &response.headers).filter(|_| is_redirect)
        else {
            return Ok(read(response, effort, now));
        };
        match resolver.resolve(&to.domain()).await {
            Ok(addresses) => address = addresses[0],
            Err(_) => {
                return Ok(RobotsAnswer {
                    access: Access::of_failure(),
                    retry_after: None,
                    effort,
                });
            }
        }
        at = to;
    }
    // More redirects than anyone needs: the file counts as not there.
    Ok(RobotsAnswer {
        access: Access::Open,
        retry_after: None,
        effort,
    })
}

fn read(response: Response, effort: Effort, now: Time) -> RobotsAnswer {
    let encoding = response
        .headers
        .get(CONTENT_ENCODING)
        .and_then(|value| value.to_str().ok());
    let retry_after = judge::wait_asked_for(&response.headers, now);
    let body = body::decode(response.raw_body, response.extent, encoding, MAX_BODY_BYTES);
    RobotsAnswer {
        access: Access::of_response(response.status, &body.bytes, PRODUCT_TOKEN),
        retry_after,
        effort,
    }
}
