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
 * URLs waiting.
 */
queued: number, 
/**
 * Links found and not yet accepted by their owner.
 */
outbox: number, 
/**
 * Domains known, replicas for others included.
 */
domains: number, 
/**
 * Domains that this peer crawls.
 */
owned_domains: number, 
/**
 * Fetches under way, those for neighbours among them.
 */
fetching: number, 
/**
 * Fetches that neighbours do for this peer.
 */
lent: number, 
/**
 * Hosts whose turn has come, and that wait until a fetch may start.
 */
ready: number, 
/**
 * Pages under way, from the start of their fetch until they are durable; lent and borrowed
 * ones among them.
 */
processing: number, 
/**
 * The peer's place in the network.
 */
network: NetworkState, 
/**
 * What needs the operator's attention, such as a full disk.
 */
attention: Attention | null, 
/**
 * What may be used right now, and why not more.
 */
allowance: Allowance, 
/**
 * What the sensors saw last.
 */
readings: Readings, 
/**
 * Pages per second over the last ten seconds.
 */
pages_per_second: number, 
/**
 * Bytes per second over the last ten seconds, as sent by the servers.
 */
bytes_per_second: number, 
/**
 * CPU time in use now, in percent of one core.
 */
cpu_percent: number, 
/**
 * Bytes in the archive.
 */
archive_bytes: number, 
/**
 * Memory in use by the process, in bytes.
 */
memory_bytes: number, 
/**
 * Domains held in memory now.
 */
resident_domains: number, 
/**
 * Pages that were fetched and are visited again, replicas for others included.
 */
known_pages: number, 
/**
 * Of these, the pages that have probably not changed since, in percent; none before they were
 * counted.
 */
current_percent: number | null, 
/**
 * What a crawl with others lacks, if anything.
 */
missing: Missing | null, 
/**
 * The ways into the ring, in the order in which they are tried.
 */
entry: Array<EntryStatus>, 
/**
 * Bytes that the rendezvous has sent and received since the start.
 */
rendezvous_bytes: number, };

/**
 * What the peer is doing.
 */
export type State = "crawling" | "idle" | "paused" | "stopping";

/**
 * What needs the operator's attention. The errors are the system's own words.
 */
export type Attention = { "kind": "store", 
/**
 * The cause.
 */
error: string, } | { "kind": "archive", 
/**
 * The cause.
 */
error: string, } | { "kind": "writer_ended" };

/**
 * The way to other peers and to the web.
 */
export type Door = { 
/**
 * What a crawl with others lacks, if anything.
 */
missing: Missing | null, 
/**
 * The ways into the ring, in the order in which they are tried.
 */
entry: Array<EntryStatus>, 
/**
 * Bytes that the rendezvous has sent and received since the start.
 */
rendezvous_bytes: number, };

/**
 * What a peer lacks. It goes on by itself as soon as it can.
 */
export type Missing = { "kind": "internet" } | { "kind": "name_server" } | { "kind": "touch" } | { "kind": "peers", 
/**
 * Ways that were tried.
 */
ways: number, };

/**
 * A way into the ring, and its state.
 */
export type EntryStatus = { 
/**
 * The way.
 */
way: EntryWay, 
/**
 * Its state.
 */
state: EntryState, 
/**
 * Peers or places that were asked last.
 */
asked: number, 
/**
 * Of these, peers that answered.
 */
answered: number, };

/**
 * A way into the ring.
 */
export type EntryWay = "remembered" | "configured" | "name" | "local_network" | "rendezvous";

/**
 * The state of a way.
 */
export type EntryState = "off" | "nothing" | "not_needed" | "trying" | "silent" | "closed" | "found";

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
 * Links that other peers sent.
 */
received: number, 
/**
 * Pages left to neighbours, because this peer had enough to do or refuses their domain.
 */
lent: number, 
/**
 * Pages fetched for neighbours, and kept here.
 */
borrowed: number, 
/**
 * Pages whose bodies went to the disk while the ring was asked whether their content is known.
 */
put_aside: number, 
/**
 * URLs that robots.txt forbids.
 */
disallowed: number, 
/**
 * Pages that were visited again.
 */
revisits: number, 
/**
 * Of these, pages that their servers called unchanged, without sending them.
 */
not_modified: number, 
/**
 * Of these, pages that read differently.
 */
changed: number, 
/**
 * Bytes that were not sent so.
 */
saved_bytes: number, 
/**
 * Sites that called changed pages unchanged, each time that one was found out.
 */
liars: number, 
/**
 * Fetches without a page, by outcome.
 */
failures: Partial<Record<PageOutcome, number>>, 
/**
 * URLs not admitted, by reason; those seen already are not counted.
 */
dropped: { [key in string]: number }, };

/**
 * The peer's speed and size.
 */
export type Usage = { 
/**
 * Pages per second over the last ten seconds.
 */
pages_per_second: number, 
/**
 * Bytes per second over the last ten seconds, as sent by the servers.
 */
bytes_per_second: number, 
/**
 * CPU time in use now, in percent of one core.
 */
cpu_percent: number, 
/**
 * Bytes in the archive.
 */
archive_bytes: number, 
/**
 * Memory in use by the process, in bytes.
 */
memory_bytes: number, 
/**
 * Domains held in memory now.
 */
resident_domains: number, 
/**
 * Pages that were fetched and are visited again, replicas for others included.
 */
known_pages: number, 
/**
 * Of these, the pages that have probably not changed since, in percent; none before they were
 * counted.
 */
current_percent: number | null, };

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
 * How the fetch ended.
 */
outcome: PageOutcome, 
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
 * How a URL's fetch ended.
 */
export type PageOutcome = "page" | "duplicate" | "unchanged" | "sitemap" | "redirect" | "not_modified" | "throttled" | "challenge" | "name_not_resolved" | "no_connection" | "no_secure_connection" | "answer_broke_off" | "no_answer_in_time" | "server_error" | "redirect_loop" | "private_address" | "not_a_page" | `status_${number}`;

/**
 * A domain in a listing. Of one that this peer only helps with, the numbers are its own; otherwise
 * they are the owner's.
 */
export type DomainRow = { 
/**
 * The domain.
 */
domain: string, 
/**
 * What this peer is to it.
 */
role: Role, 
/**
 * What this peer fetched for its owner.
 */
helped: Help | null, 
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
 * What becomes of it.
 */
state: DomainStatus, 
/**
 * What is known of its robots.txt.
 */
robots: RobotsStatus, };

/**
 * What becomes of a domain.
 */
export type DomainStatus = { "kind": "crawling" } | { "kind": "done" } | { "kind": "rests", 
/**
 * The end of its rest.
 */
until: number, } | { "kind": "stopped", 
/**
 * The reason.
 */
why: StopReason, } | { "kind": "refused" } | { "kind": "helped" };

/**
 * Why a domain is not asked any more.
 */
export type StopReason = "forbidden" | "challenged" | "unreachable";

/**
 * What is known of a domain's robots.txt.
 */
export type RobotsStatus = { "kind": "not_asked" } | { "kind": "silent", 
/**
 * When it is asked again.
 */
until: number, } | { "kind": "known", 
/**
 * The pause between requests that it asks for, in milliseconds.
 */
delay_ms: number | null, } | { "kind": "left_to_owner" };

/**
 * What a peer is to a domain.
 */
export type Role = "owner" | "holder" | "helper";

/**
 * The work of this peer for the owner of a domain.
 */
export type Help = { 
/**
 * The owner, the last time.
 */
owner: string, 
/**
 * Pages fetched, and kept here.
 */
pages: number, 
/**
 * Fetches that brought no page.
 */
failed: number, 
/**
 * Bytes received.
 */
bytes: number, 
/**
 * When this peer asked the domain last.
 */
visited: number, };

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
export type Topic = "state" | "network" | "owner" | "watch" | "trouble";

/**
 * A peer's place in the network.
 */
export type NetworkState = { "kind": "outside" } | { "kind": "joining" } | { "kind": "alone" } | { "kind": "member", 
/**
 * Members in all, itself included, as far as can be told.
 */
peers: number, } | { "kind": "fixed", 
/**
 * Members in all, itself included.
 */
peers: number, 
/**
 * Members that do not answer.
 */
down: number, };

/**
 * The network as seen from this peer.
 */
export type NetworkStatus = { 
/**
 * This peer.
 */
me: string, 
/**
 * This peer's place in it.
 */
standing: NetworkState, 
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
 * The addresses under which others see this peer, as far as enough of them agree.
 */
seen_at: Array<string>, 
/**
 * Can others reach this peer without being called first?
 */
reachability: Reachability, 
/**
 * How often others refused this peer's seat on the ring: its clock is wrong, or its address.
 */
seat_refused: number, 
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
 * Measured round trips in milliseconds.
 */
round_trips_ms: { [key in string]: number }, 
/**
 * Peers with a connection now.
 */
connected: Array<PeerView>, 
/**
 * What this peer found when it checked the work of others, liars first.
 */
standings: Array<Standing>, 
/**
 * Requests and bytes since the start.
 */
traffic: Traffic, 
/**
 * The ring's own messages: kind, sent, received.
 */
ring_messages: Array<[string, number, number]>, };

/**
 * Whether others can reach this peer by themselves.
 */
export type Reachability = "open" | "unknown" | "not-reachable";

/**
 * What this peer found when it checked another one's work.
 */
export type Standing = { 
/**
 * The other peer.
 */
peer: string, 
/**
 * How often something of its work was checked.
 */
checked: number, 
/**
 * How often nothing was wrong.
 */
right: number, 
/**
 * It is distrusted until then.
 */
distrusted_until: number | null, 
/**
 * What was wrong, oldest first.
 */
lies: Array<FoundLie>, };

/**
 * Something that a peer said and that was not so.
 */
export type FoundLie = { 
/**
 * About which work.
 */
kind: LieKind, 
/**
 * How many things were wrong.
 */
count: number, 
/**
 * When it was found.
 */
at: number, };

/**
 * A kind of lie.
 */
export type LieKind = "dropped_links" | "lost_pages";

/**
 * One connected peer.
 */
export type PeerView = { 
/**
 * The peer.
 */
id: string, 
/**
 * The way to it now.
 */
route: string, 
/**
 * The side that made the connection.
 */
dialler: Dialler, 
/**
 * Software and version, as the peer says.
 */
version: string, 
/**
 * The services that it offers.
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
 * Whether the connection is kept alive.
 */
useful: boolean, 
/**
 * Bytes received over this connection, with all that QUIC adds.
 */
bytes_in: number, 
/**
 * Bytes sent over it.
 */
bytes_out: number, };

/**
 * Which side made a connection.
 */
export type Dialler = "me" | "them";

/**
 * The services that a peer offers, one bit each. Bits that this version does not know are kept and
 * ignored.
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
 * The list of URLs where a crawl that knows nothing begins.
 */
export type StartSeeds = { 
/**
 * Where the list comes from.
 */
origin: SeedOrigin, 
/**
 * The URLs, in order.
 */
urls: Array<string>, };

/**
 * Where a list of seeds comes from.
 */
export type SeedOrigin = "built_in" | "settings" | "volunteer";

/**
 * Another list where a crawl that knows nothing begins.
 */
export type StartSeedsRequest = { 
/**
 * One URL a line; lines that begin with `#` are for people.
 */
text: string, };

/**
 * An invite to this peer's network.
 */
export type InviteAnswer = { 
/**
 * The link.
 */
link: string, 
/**
 * The same as a QR code, an SVG picture.
 */
svg: string, 
/**
 * The same for a terminal.
 */
text: string, 
/**
 * The network, and the peers that it names.
 */
contents: InviteContents, };

/**
 * A look into an invite.
 */
export type InviteContents = { 
/**
 * The network's name.
 */
network: string, 
/**
 * Is it a private network?
 */
is_private: boolean, 
/**
 * Is it the network that this peer is in?
 */
is_own: boolean, 
/**
 * Addresses of its peers, some for each.
 */
peers: string[][], };

/**
 * An invite to look into.
 */
export type InviteRequest = { 
/**
 * The link, as it was pasted.
 */
link: string, };

/**
 * An invite that was opened outside the dashboard, as by a click in a mail.
 */
export type OpenedInvite = { 
/**
 * The link, if one waits.
 */
link: string | null, };

/**
 * An invite to follow.
 */
export type JoinRequest = { 
/**
 * The link, as it was pasted.
 */
link: string, 
/**
 * Has the volunteer agreed to go to another network?
 */
agreed: boolean, };

/**
 * What became of an invite.
 */
export type Joined = { "kind": "called", 
/**
 * Peers that it names.
 */
peers: number, 
/**
 * Of these, peers that answered.
 */
answered: number, } | { "kind": "next_start", 
/**
 * The network's name.
 */
network: string, };

/**
 * A domain that this volunteer does not want to crawl, with everything below it.
 */
export type RefusalRequest = { 
/**
 * The domain.
 */
domain: string, };

/**
 * Something to watch.
 */
export type WatchRequest = { 
/**
 * The URL of a page, or the name of a site.
 */
target: string, 
/**
 * The end; in 90 days if none is named.
 */
until: number | null, };

/**
 * Everything that is watched.
 */
export type WatchList = { 
/**
 * The watches.
 */
watches: Array<OwnWatch>, 
/**
 * The path of the feed of changes, below the API's own address. Whoever knows it can read the
 * feed, and nothing else.
 */
feed: string, };

/**
 * A watch of the volunteer, as it stands.
 */
export type OwnWatch = { 
/**
 * A URL, or the name of a site.
 */
target: string, 
/**
 * Its beginning.
 */
since: number, 
/**
 * Its end.
 */
until: number, 
/**
 * The volunteer has heard of all changes up to then.
 */
told: number, 
/**
 * The last visit of the page, as far as its owner has told; zero if there was none.
 */
visited: number, 
/**
 * The answer of the peer that looks after the page.
 */
standing: WatchStanding, };

/**
 * What became of a watch.
 */
export type WatchStanding = "asking" | "kept" | "full" | "unknown";

/**
 * A change of something that is watched.
 */
export type WatchedChange = { 
/**
 * When it was noticed.
 */
at: number, 
/**
 * What was watched.
 */
target: string, 
/**
 * The page that changed.
 */
url: string, 
/**
 * The kind of the change.
 */
kind: ChangeKind, 
/**
 * Lines that are new, or the beginning of the page.
 */
added: string, 
/**
 * Lines that are there no more.
 */
removed: string, 
/**
 * Whether there was more text than is told.
 */
is_cut: boolean, };

/**
 * The kind of a change.
 */
export type ChangeKind = "changed" | "reads_now" | "unseen" | "gone";

/**
 * A path that opens the dashboard once, in a browser that has no token.
 */
export type OpenLink = { 
/**
 * Path and query below the API's own address.
 */
path: string, };

/**
 * Everything that a volunteer can choose about the use of their computer.
 */
export type Preferences = { 
/**
 * Version of this format.
 */
version: number, 
/**
 * Which set of values this is.
 */
preset: Preset, 
/**
 * When to crawl.
 */
run: Run, 
/**
 * Seconds without a key or mouse move after which the computer counts as idle. BOINC takes 3
 * minutes.
 */
idle_seconds: number, 
/**
 * What happens while the computer is in use, if the crawl waits for idle time.
 */
while_in_use: WhileInUse, 
/**
 * What the crawl may use at most.
 */
full: Profile, 
/**
 * What it may use when it goes gently: while in use, or by schedule. Never more than `full`.
 */
gentle: Profile, 
/**
 * Resident memory at most, in MiB; 0 is no limit.
 */
memory_mib: number, 
/**
 * The archive at most, in MiB; 0 leaves it to the archive's settings.
 */
disk_mib: number, 
/**
 * Disk space that stays free, in MiB; 0 leaves it to the archive's settings.
 */
keep_free_mib: number, 
/**
 * Bytes sent and received in a month at most, in MiB; 0 is no limit.
 */
month_mib: number, 
/**
 * Pause when other programs use more than this share of the machine's CPU, in percent; 0 never
 * does.
 */
other_cpu_percent: number, 
/**
 * What happens on battery.
 */
on_battery: Toward, 
/**
 * What happens on a metered connection.
 */
on_metered: Toward, 
/**
 * What happens while a program fills the screen.
 */
on_full_screen: Toward, 
/**
 * Programs during which the crawl pauses, by the name of their executable.
 */
programs: Array<string>, 
/**
 * The week, hour by hour.
 */
schedule: Schedule, 
/**
 * How the system's scheduler is to treat the process.
 */
priority: Priority, 
/**
 * Seconds of a pause after which the peer leaves the ring, so that others crawl its domains; 0
 * is never.
 */
leave_after_seconds: number, 
/**
 * May peers be looked for, and this one announced, in BitTorrent's public DHT?
 */
rendezvous: Switch, 
/**
 * What concerns the tray app alone.
 */
desktop: Desktop, };

/**
 * A set of values.
 */
export type Preset = "gentle" | "balanced" | "generous" | "custom";

/**
 * When to crawl.
 */
export type Run = "always" | "when_idle" | "never";

/**
 * What happens while the computer is in use.
 */
export type WhileInUse = "off" | "gentle";

/**
 * What may be used of CPU and network. 0 is no limit.
 */
export type Profile = { 
/**
 * CPU time, in percent of one core.
 */
cpu_percent: number, 
/**
 * KiB received per second.
 */
down_kib: number, 
/**
 * KiB sent per second.
 */
up_kib: number, 
/**
 * Fetches at the same time.
 */
fetches: number, };

/**
 * What a circumstance does to the crawl.
 */
export type Toward = "pause" | "go_on";

/**
 * Preferences of the tray app. Presets leave them as they are.
 */
export type Desktop = { 
/**
 * Seconds without input after which the screensaver opens by itself; 0 is never.
 */
screensaver_seconds: number, 
/**
 * Does the app tell when something needs attention?
 */
notifications: Switch, 
/**
 * Does the app start with the session?
 */
start_at_login: Switch, 
/**
 * Does the app install updates, where that is its own affair?
 */
updates: Switch, };

/**
 * On or off.
 */
export type Switch = "on" | "off";

/**
 * How the system's scheduler is to treat the process.
 */
export type Priority = "lowest" | "normal";

/**
 * What may run in each hour of a week.
 */
export type Schedule = { 
/**
 * 24 letters, one an hour from midnight: `f` full, `g` gentle, `-` off.
 */
monday: Day, 
/**
 * As Monday.
 */
tuesday: Day, 
/**
 * As Monday.
 */
wednesday: Day, 
/**
 * As Monday.
 */
thursday: Day, 
/**
 * As Monday.
 */
friday: Day, 
/**
 * As Monday.
 */
saturday: Day, 
/**
 * As Monday.
 */
sunday: Day, };

/**
 * The hours of one day, written as 24 letters.
 */
export type Day = string;

/**
 * What a number may be.
 */
export type Range = { 
/**
 * The field, such as `full.cpu_percent`.
 */
field: string, 
/**
 * The least.
 */
min: number, 
/**
 * The greatest.
 */
max: number, 
/**
 * Whether 0 is accepted too, as no limit.
 */
zero_is_no_limit: boolean, };

/**
 * What may be used right now. A limit of `None` is no limit.
 */
export type Allowance = { 
/**
 * How hard the crawl may go.
 */
pace: Pace, 
/**
 * Why not harder.
 */
reason: Reason | null, 
/**
 * The same as a sentence for people.
 */
sentence: string, 
/**
 * CPU time, in percent of one core.
 */
cpu_percent: number | null, 
/**
 * Bytes received per second.
 */
down_bytes: number | null, 
/**
 * Bytes sent per second.
 */
up_bytes: number | null, 
/**
 * Fetches at the same time.
 */
fetches: number | null, 
/**
 * Resident memory, in bytes.
 */
memory_bytes: number | null, 
/**
 * The archive, in bytes; `None` is what the settings of the archive say.
 */
disk_bytes: number | null, 
/**
 * Free space that stays, in bytes; `None` is what the settings of the archive say.
 */
keep_free_bytes: number | null, 
/**
 * How the system's scheduler is to treat the process.
 */
priority: Priority, };

/**
 * How hard the crawl may go.
 */
export type Pace = "paused" | "gentle" | "full";

/**
 * Why less than everything is allowed.
 */
export type Reason = { "code": "by_you" } | { "code": "snoozed", 
/**
 * When it ends.
 */
until: number, } | { "code": "never" } | { "code": "schedule", 
/**
 * When it allows more, if ever.
 */
until: number | null, } | { "code": "battery", 
/**
 * How full it is.
 */
percent: number | null, } | { "code": "metered" } | { "code": "quota", 
/**
 * When the next month begins.
 */
until: number, } | { "code": "disk", 
/**
 * What is left.
 */
free_mib: number, } | { "code": "memory", 
/**
 * What is in use.
 */
used_mib: number, } | { "code": "program", 
/**
 * Which one.
 */
name: string, } | { "code": "full_screen" } | { "code": "other_load", 
/**
 * How much they use, of the whole machine.
 */
percent: number, } | { "code": "in_use" } | { "code": "unseen" };

/**
 * What the sensors saw last; `None` where nothing could be seen.
 */
export type Readings = { 
/**
 * Milliseconds since the last key or mouse move. Unknown counts as in use.
 */
idle_ms: number | null, 
/**
 * Which detector says so, such as "Mutter" or "X11".
 */
detector: string | null, 
/**
 * Where the power comes from. Unknown counts as mains.
 */
power: Power | null, 
/**
 * Whether bytes cost money. Unknown counts as no.
 */
metering: Metering | null, 
/**
 * Whether a program fills the screen. Unknown counts as no.
 */
screen: Screen | null, 
/**
 * A listed program that runs.
 */
program: string | null, 
/**
 * CPU that other programs use, in percent of the whole machine. Unknown counts as none.
 */
other_cpu_percent: number | null, 
/**
 * Memory that this process uses, in bytes.
 */
memory_bytes: number | null, 
/**
 * Free space where the data folder is, in bytes.
 */
free_bytes: number | null, 
/**
 * Bytes sent and received this month.
 */
month_bytes: number, 
/**
 * Sensors that cannot see, each with the reason.
 */
missing: Array<string>, };

/**
 * Where the power comes from.
 */
export type Power = { "from": "mains" } | { "from": "battery", 
/**
 * How full it is.
 */
percent: number | null, };

/**
 * Whether bytes cost money.
 */
export type Metering = "unmetered" | "metered";

/**
 * What the screen shows.
 */
export type Screen = "shared" | "full";
