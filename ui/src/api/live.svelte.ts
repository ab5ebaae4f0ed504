/** What the peer sends by itself: its status every second, pages and notes as they come. */
import { peer, Refused } from "./client";
import { key } from "./key";
import type { Note, PageEvent, Status, WatchedChange } from "./model";

/** Seconds of the live chart. */
const CHART_SECONDS = 300;
const MAX_PAGES = 500;
const MAX_NOTES = 1000;
const MAX_CHANGES = 500;
/** A status older than this is not news. */
const SILENCE = 5000;

export type Connection = "connecting" | "open" | "lost" | "shut out";

class Live {
  status = $state.raw<Status>();
  connection = $state<Connection>("connecting");
  /** Newest first. */
  pages = $state.raw<PageEvent[]>([]);
  notes = $state.raw<Note[]>([]);
  changes = $state.raw<WatchedChange[]>([]);
  /** Pages a second, one for each second, newest last. */
  rates = $state.raw<number[]>([]);
  /** The time, once a second. */
  now = $state(Date.now());
  #source?: EventSource;
  #heard = 0;
  #fresh: PageEvent[] = [];

  start(): void {
    this.#follow();
    setInterval(() => this.#tick(), 1000);
  }

  #follow(): void {
    this.#source?.close();
    const source = new EventSource(`/api/events?key=${encodeURIComponent(key())}`);
    this.#source = source;
    const on = <T>(name: string, take: (value: T) => void) =>
      source.addEventListener(name, (event: MessageEvent<string>) =>
        take(JSON.parse(event.data) as T),
      );
    source.addEventListener("open", () => void this.#catchUp());
    source.addEventListener("error", () => void this.#lost());
    on<Status>("status", (status) => this.#take(status));
    on<PageEvent>("page", (page) => this.#fresh.push(page));
    on<WatchedChange>(
      "change",
      (change) => (this.changes = [change, ...this.changes].slice(0, MAX_CHANGES)),
    );
    on<Note>("note", (note) => (this.notes = [note, ...this.notes].slice(0, MAX_NOTES)));
  }

  #take(status: Status): void {
    this.#heard = Date.now();
    this.connection = "open";
    this.status = status;
    this.rates = [...this.rates, status.pages_per_second].slice(-CHART_SECONDS);
  }

  /** Many pages may come in a second; the list changes once. */
  #tick(): void {
    this.now = Date.now();
    if (this.#fresh.length > 0) {
      this.pages = [...this.#fresh.toReversed(), ...this.pages].slice(0, MAX_PAGES);
      this.#fresh = [];
    }
    if (this.connection === "open" && this.now - this.#heard > SILENCE) this.connection = "lost";
    if (this.connection === "lost" && this.#source?.readyState === EventSource.CLOSED)
      this.#follow();
  }

  async #catchUp(): Promise<void> {
    try {
      const [pages, notes, changes] = await Promise.all([
        peer.pages(),
        peer.journal(),
        peer.changes(),
      ]);
      this.changes = changes;
      this.pages = pages.toReversed();
      this.notes = notes.toReversed();
      this.#fresh = [];
    } catch {
      // The stream itself will say that the peer is gone.
    }
  }

  async #lost(): Promise<void> {
    if (this.connection === "open" || this.connection === "connecting") this.connection = "lost";
    try {
      await peer.status();
    } catch (error) {
      if (error instanceof Refused && error.status === 401) {
        this.connection = "shut out";
        this.#source?.close();
      }
    }
  }
}

export const live = new Live();
