//! The name server of the toy web: answers `A` and `AAAA` queries for its hosts, each host in its
//! own way.

use crate::{listen, log::Log};
use hickory_server::{
    Server,
    net::runtime::Time,
    proto::{
        op::{Header, HeaderCounts, Metadata, ResponseCode},
        rr::{Name, RData, Record, RecordType, rdata::CNAME},
    },
    server::{Request, RequestHandler, ResponseHandler, ResponseInfo},
    zone_handler::MessageResponseBuilder,
};
use std::{
    io,
    net::{IpAddr, SocketAddr},
    sync::Arc,
    time::Duration,
};

/// Time to live of an ordinary answer, in seconds: short, so that tests see caches expire if they
/// wait for it.
pub(crate) const TTL_S: u32 = 60;
/// A TCP client that asks nothing for so long is disconnected.
const TCP_TIMEOUT: Duration = Duration::from_secs(10);
/// Answers a TCP client may leave unread.
const TCP_ANSWERS: usize = 32;
/// Longest chain of aliases in an answer.
const MAX_ALIASES: usize = 16;

/// What a name resolves to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Resolution {
    /// Addresses, and for how long they may be kept.
    Addresses(Vec<IpAddr>, u32),
    /// Another name.
    Alias(String),
    /// NXDOMAIN.
    Missing,
    /// SERVFAIL.
    Failure,
    /// No answer at all.
    Silence,
}

/// Something that knows names.
pub(crate) trait Resolve: Send + Sync + Unpin + 'static {
    /// What a name (lower case, no trailing dot) resolves to when asked for this kind of record.
    fn resolve(&self, name: &str, kind: RecordType) -> Resolution;
}

/// A running name server.
pub(crate) struct NameServer {
    pub(crate) address: SocketAddr,
    server: Server<Handler>,
}

impl NameServer {
    pub(crate) async fn start(
        at: SocketAddr,
        zone: Arc<dyn Resolve>,
        log: Arc<Log>,
    ) -> io::Result<Self> {
        let (udp, tcp, address) = listen::for_dns(at).await?;
        let mut server = Server::new(Handler { zone, log });
        server.register_socket(udp);
        server.register_listener(tcp, TCP_TIMEOUT, TCP_ANSWERS);
        Ok(NameServer { address, server })
    }

    pub(crate) async fn stop(mut self) {
        if let Err(error) = self.server.shutdown_gracefully().await {
            tracing::debug!(%error, "the name server did not stop cleanly");
        }
    }
}

struct Handler {
    zone: Arc<dyn Resolve>,
    log: Arc<Log>,
}

/// What is sent back.
enum Answer {
    Records(Vec<Record>),
    Code(ResponseCode),
    Nothing,
}

impl Handler {
    fn answer(&self, name: &Name, kind: RecordType) -> Answer {
        if !matches!(kind, RecordType::A | RecordType::AAAA) {
            return Answer::Code(ResponseCode::NoError);
        }
        let mut records = Vec::new();
        let mut owner = name.clone();
        for _ in 0..MAX_ALIASES {
            match self.zone.resolve(&plain(&owner), kind) {
                Resolution::Addresses(addresses, ttl) => {
                    let data = addresses
                        .into_iter()
                        .filter_map(|address| rdata(address, kind));
                    records.extend(data.map(|data| Record::from_rdata(owner.clone(), ttl, data)));
                    return Answer::Records(records);
                }
                Resolution::Alias(target) => {
                    let Ok(target) = Name::from_ascii(target + ".") else {
                        break;
                    };
                    records.push(Record::from_rdata(
                        owner,
                        TTL_S,
                        RData::CNAME(CNAME(target.clone())),
                    ));
                    owner = target;
                }
                Resolution::Missing => return Answer::Code(ResponseCode::NXDomain),
                Resolution::Failure => return Answer::Code(ResponseCode::ServFail),
                Resolution::Silence => return Answer::Nothing,
            }
        }
        Answer::Code(ResponseCode::ServFail)
    }
}

#[async_trait::async_trait]
impl RequestHandler for Handler {
    async fn handle_request<R: ResponseHandler, T: Time>(
        &self,
        request: &Request,
        mut reply: R,
    ) -> ResponseInfo {
        let mut metadata = Metadata::response_from_request(&request.metadata);
        metadata.authoritative = true;
        let nothing_sent = ResponseInfo::from(Header {
            metadata,
            counts: HeaderCounts::default(),
        });
        let Ok(info) = request.request_info() else {
            return nothing_sent;
        };
        let (name, kind) = (Name::from(info.query.name()), info.query.query_type());
        let answer = self.answer(&name, kind);
        self.log
            .looked_up(plain(&name).into(), kind.to_string(), describe(&answer));
        let records = match answer {
            Answer::Records(records) => records,
            Answer::Code(code) => {
                metadata.response_code = code;
                Vec::new()
            }
            Answer::Nothing => return nothing_sent,
        };
        let response = MessageResponseBuilder::from_message_request(request).build(
            metadata,
            &records,
            [],
            [],
            [],
        );
        reply.send_response(response).await.unwrap_or(nothing_sent)
    }
}

/// A name as text, lower case, without the trailing dot.
fn plain(name: &Name) -> String {
    let text = name.to_ascii().to_ascii_lowercase();
    text.strip_suffix('.').map(str::to_owned).unwrap_or(text)
}

fn rdata(address: IpAddr, kind: RecordType) -> Option<RData> {
    match (address, kind) {
        (IpAddr::V4(address), RecordType::A) => Some(RData::A(address.into())),
        (IpAddr::V6(address), RecordType::AAAA) => Some(RData::AAAA(address.into())),
        _ => None,
    }
}

fn describe(answer: &Answer) -> String {
    match answer {
        Answer::Records(records) => records
            .iter()
            .map(|record| record.data.to_string())
            .collect::<Vec<_>>()
            .join(" "),
        Answer::Code(code) => code.to_string(),
        Answer::Nothing => "silence".to_owned(),
    }
}
