import { channelTable } from "../../src/channels"
import type { EmailProvider } from "../../src/emails/providers/provider"
import type { TestService } from "../harness/service"
import { WorkLoops, workOf } from "../harness/work-loops"

/** The whole path from the request to the wire, run by the real loop until `done`. */
export async function delivering(
  it: TestService,
  provider: EmailProvider,
  done: (loop: WorkLoops) => Promise<boolean>,
) {
  const { parts } = it
  const concurrency = 20
  const channels = channelTable({ ...parts, provider, sandbox: provider, concurrency })
  const work = workOf(parts, channels, parts)
  const options = { store: parts.store, work, concurrency, lease_ms: 30_000, alone: false }
  const loop = new WorkLoops(options)
  await loop.start()
  while (!(await done(loop))) await Bun.sleep(10)
  await loop.stop(100)
}
