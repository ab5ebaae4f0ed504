/** The preferences as the settings page edits them, with what the peer said to the last change. */
import { peer } from "../../api/client";
import type { Preferences, Range } from "../../api/model";
import { change } from "../../logic/preferences";

export class Form {
  preferences = $state.raw<Preferences>();
  /** Why something was not done; nothing if everything was. */
  problem = $state("");
  saved = $state("");
  #ranges = $state.raw<Map<string, Range>>(new Map());

  async load(): Promise<void> {
    try {
      const [all, accepted] = await Promise.all([peer.preferences(), peer.ranges()]);
      this.#ranges = new Map(accepted.map((range) => [range.field, range]));
      this.preferences = all;
    } catch (error) {
      this.problem = (error as Error).message;
    }
  }

  range(path: string): Range | undefined {
    return this.#ranges.get(path);
  }

  /** Gives what is wrong, if anything is, for the field to show. */
  async save(path: string, value: unknown): Promise<string> {
    try {
      this.preferences = await peer.prefer(change(path, value));
      [this.problem, this.saved] = ["", `Saved at ${new Date().toLocaleTimeString("en-GB")}.`];
      return "";
    } catch (error) {
      this.saved = "";
      return (error as Error).message;
    }
  }

  /** Saves what has no place of its own for a problem; the page shows it. */
  async choose(path: string, value: unknown): Promise<void> {
    this.problem = await this.save(path, value);
  }
}

/** A preference's path as the id of its field. */
export function idOf(path: string): string {
  return path.replaceAll(".", "-");
}
