// Generated from Rust by crates/peer/src/typescript.rs; do not edit.

/**
 * How things stand.
 */
export type Status = { 
/**
 * The program's version.
 */
version: string, 
/**
 * What the peer is doing.
 */
state: State, 
/**
 * The same as a sentence for people.
 */
reason: string, 
/**
 * When this run began.
 */
started: number, 
/**
 * When this snapshot was taken.
 */
at: number, 
/**
 * Counted over all runs.
 */
totals: Totals, 
/**
 * Pages per second over the last ten seconds.
 */
pages_per_second: number, 
/**
 * Bytes per second over the last ten seconds, as sent by the servers.
 */
bytes_per_second: number, 
/**
 * URLs waiting.
 */
queued: number, 
/**
 * Links found and not yet accepted by their owner.
 */
outbox: number, 
/**
 * Domains known.
 */
domains: number, 
/**
 * Domains held in memory now.
 */
resident_domains: number, 
/**
 * Fetches under way.
 */
fetching: number, 
/**
 * Pages fetched and not yet durable.
 */
processing: number, 
/**
 * Bytes in the archive.
 */
archive_bytes: number, 
/**
 * Memory in use by the process, in bytes.
 */
memory_bytes: number, 
/**
 * The peer's place in the network: "alone", "joining", "member of ~12 peers".
 */
network: string, 
/**
 * What needs the operator's attention, such as a full disk.
 */
attention: string | null, };

/**
 * What the peer is doing.
 */
export type State = "crawling" | "idle" | "paused" | "stopping";

/**
 * Counted over all runs.
 */
export type Totals = { 
/**
 * Pages fetched with their body.
 */
pages: number, 
/**
 * Of these, pages whose content was known already.
 */
duplicates: number, 
/**
 * Bytes received as bodies.
 */
bytes: number, 
/**
 * Links found on pages.
 */
links: number, 
/**
 * URLs admitted to queues.
 */
admitted: number, 
/**
 * URLs that robots.txt forbids.
 */
disallowed: number, 
/**
 * Fetches without a page, by reason.
 */
failures: { [key in string]: number }, 
/**
 * URLs not admitted, by reason; those seen already are not counted.
 */
dropped: { [key in string]: number }, };

/**
 * Something that just happened to a URL, for the list of recent pages and the event stream.
 */
export type PageEvent = { 
/**
 * When.
 */
at: number, 
/**
 * What was fetched.
 */
url: string, 
/**
 * "page", "duplicate", "redirect", or the reason of a failure.
 */
outcome: string, 
/**
 * Bytes of the body.
 */
bytes: number, 
/**
 * Links found.
 */
links: number, 
/**
 * Milliseconds the fetch took.
 */
millis: number, };

/**
 * A domain in a listing.
 */
export type DomainRow = { 
/**
 * The domain.
 */
domain: string, 
/**
 * Pages fetched.
 */
fetched: number, 
/**
 * URLs waiting.
 */
queued: number, 
/**
 * Fetches that failed.
 */
failed: number, 
/**
 * Bytes received.
 */
bytes: number, 
/**
 * When it was asked last; zero if never.
 */
visited: number, 
/**
 * When it may next be asked.
 */
next: number, 
/**
 * The pause after the last request, in milliseconds.
 */
delay_ms: number, 
/**
 * "crawling", "resting", "stopped"… with the reason.
 */
state: string, 
/**
 * What its robots.txt says: "allowed", "disallowed", "unknown", with the crawl delay if there is one.
 */
robots: string, };

/**
 * One hour's work. Hours without any are left out.
 */
export type Hour = { 
/**
 * When the hour began.
 */
at: number, 
/**
 * Pages fetched in it.
 */
pages: number, 
/**
 * Bytes received in it.
 */
bytes: number, };

/**
 * Something worth telling.
 */
export type Note = { 
/**
 * When.
 */
at: number, 
/**
 * What it is about.
 */
topic: Topic, 
/**
 * A sentence.
 */
text: string, };

/**
 * What a note is about.
 */
export type Topic = "state" | "network" | "owner" | "trouble";

/**
 * The network as seen from this peer.
 */
export type NetworkStatus = { 
/**
 * This peer.
 */
me: string, 
/**
 * "alone", "joining", "member of ~12 peers"…
 */
standing: string, 
/**
 * Members of the network, as far as can be told.
 */
size_estimate: number, 
/**
 * The share of all keys that this peer owns, 0 to 1.
 */
share: number, 
/**
 * Where this peer listens.
 */
listens: Array<string>, 
/**
 * Who is before this peer on the ring.
 */
predecessor: string | null, 
/**
 * Who is after it, nearest first.
 */
successors: Array<string>, 
/**
 * Distinct fingers beyond the successors.
 */
fingers: Array<string>, 
/**
 * The leaf set: neighbours on either side.
 */
leaves: Array<string>, 
/**
 * Measured round trips in milliseconds. Pairs, because an id cannot be a name in JSON.
 */
round_trips_ms: Array<[string, number]>, 
/**
 * Peers with a connection now.
 */
connected: Array<PeerView>, 
/**
 * Requests and bytes since the start.
 */
traffic: Traffic, 
/**
 * The ring's own messages: kind, sent, received.
 */
ring_messages: Array<[string, number, number]>, };

/**
 * One connected peer.
 */
export type PeerView = { 
/**
 * Who.
 */
id: string, 
/**
 * Where now.
 */
address: string, 
/**
 * Who made the connection.
 */
dialler: Dialler, 
/**
 * Software and version, as the peer says.
 */
version: string, 
/**
 * What it offers.
 */
capabilities: Capabilities, 
/**
 * Smoothed round trip.
 */
rtt_ms: number, 
/**
 * Age of the connection.
 */
connected_s: number, 
/**
 * Is the connection kept alive?
 */
useful: boolean, };

/**
 * Which side made a connection.
 */
export type Dialler = "me" | "them";

/**
 * What a peer offers, one bit each. Bits that this version does not know are kept and ignored.
 */
export type Capabilities = number;

/**
 * Totals since the start.
 */
export type Traffic = { 
/**
 * By the kind's number on the wire; kinds that never occurred are left out.
 */
kinds: { [key in number]: KindTotals }, 
/**
 * Connections made.
 */
dialled: number, 
/**
 * Attempts to make one that failed.
 */
dials_failed: number, 
/**
 * Connections accepted.
 */
accepted: number, 
/**
 * Connections of others that did not get as far as a hello.
 */
handshakes_failed: number, 
/**
 * Connections refused because they belong to another network.
 */
wrong_network: number, 
/**
 * Frames that made no sense.
 */
malformed: number, 
/**
 * Requests of others that this peer refused.
 */
refused: number, 
/**
 * Times that a peer had to wait for its rate.
 */
throttled: number, 
/**
 * Requests of others given up because they arrived, or their answers were read, too slowly.
 */
slow: number, 
/**
 * Connections closed to make room.
 */
evicted: number, 
/**
 * Newcomers turned away at the door: too many at once, or banished.
 */
turned_away: number, 
/**
 * Newcomers who had to prove their address first, because many came at once.
 */
retried: number, };

/**
 * Totals of one kind of request since the start. Bytes are those of bodies.
 */
export type KindTotals = { 
/**
 * Requests of this peer that were answered.
 */
asked: number, 
/**
 * Requests of others that this peer answered.
 */
answered: number, 
/**
 * Bytes received.
 */
bytes_in: number, 
/**
 * Bytes sent.
 */
bytes_out: number, };

/**
 * Where this peer and those it is connected to are.
 */
export type Whereabouts = { 
/**
 * The country of this peer, as far as others see its address.
 */
own: Country | null, 
/**
 * The countries of connected peers; those in a private network have none.
 */
peers: Array<[string, Country | null]>, };

/**
 * A country by its two letters in ISO 3166.
 */
export type Country = string;

/**
 * URLs to begin from.
 */
export type SeedRequest = { 
/**
 * As typed by a person; each is checked on its own.
 */
urls: Array<string>, };

/**
 * What became of the seeds.
 */
export type SeedAnswer = { 
/**
 * Accepted and durable (seen ones count too: they are in the crawl already).
 */
accepted: number, 
/**
 * Refused, each with the reason.
 */
refused: Array<RefusedSeed>, };

/**
 * A seed that cannot be crawled.
 */
export type RefusedSeed = { 
/**
 * As given.
 */
url: string, 
/**
 * What is wrong with it.
 */
why: string, };

/**
 * A domain that this volunteer does not want to crawl, with everything below it.
 */
export type RefusalRequest = { 
/**
 * The domain.
 */
domain: string, };

/**
 * A path that opens the dashboard once, in a browser that has no token.
 */
export type OpenLink = { 
/**
 * Path and query below the API's own address.
 */
path: string, };
