/** What a page does again and again while somebody looks at it. */
import { untrack } from "svelte";

/**
 * Calls `refresh` now and every so many milliseconds; not while the page is out of sight, but at once when it is back.
 * Gives the function that ends it, as an effect wants it. What `refresh` reads does not run the effect again.
 */
export function every(millis: number, refresh: () => unknown): () => void {
  let isDue = false;
  const beat = () => {
    isDue = document.hidden;
    if (!isDue) untrack(refresh);
  };
  const look = () => void (isDue && beat());
  beat();
  const timer = setInterval(beat, millis);
  document.addEventListener("visibilitychange", look);
  return () => {
    clearInterval(timer);
    document.removeEventListener("visibilitychange", look);
  };
}
