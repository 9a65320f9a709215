import type { Workers } from "../core/workers"
import { textFromHtml } from "../lib/text-from-html"

/** What is larger is read in a worker: some megabytes would hold all other requests for seconds. */
const MOST_READ_HERE = 32 * 1024
const READ_DEADLINE_MS = 10_000

/** The text that a mail without one gets from its html. */
export const textOfHtml = async (workers: Pick<Workers, "run">, html: string): Promise<string> =>
  html.length <= MOST_READ_HERE
    ? textFromHtml(html)
    : workers.run<string>("text-from-html", html, { deadline_ms: READ_DEADLINE_MS })
