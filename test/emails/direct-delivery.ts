import { channelTable } from "../../src/channels"
import type { EmailProvider } from "../../src/emails/providers/provider"
import { JobLoop } from "../../src/jobs/job-loop"
import { jobTable } from "../../src/work"
import type { TestService } from "../harness/service"

/** The whole path from the request to the wire, run by the real loop until `done`. */
export async function delivering(
  it: TestService,
  provider: EmailProvider,
  done: (loop: JobLoop) => Promise<boolean>,
) {
  const { parts } = it
  const concurrency = 20
  const channels = channelTable({ ...parts, provider, sandbox: provider, concurrency })
  const handlers = parts.queues.over(jobTable(parts, channels, parts))
  const options = { store: parts.store, handlers, concurrency, lease_ms: 30_000, alone: false }
  const loop = new JobLoop(options)
  await loop.start()
  while (!(await done(loop))) await Bun.sleep(10)
  await loop.stop(100)
}
