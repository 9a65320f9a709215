import { channelTable } from "../../src/channels"
import { sleep } from "../../src/core/time"
import { Failover } from "../../src/providers/failover"
import { FAULTS } from "../../src/providers/provider"
import type { OutgoingPush } from "../../src/push/providers/provider"
import { isAnyOpen } from "../harness/delivery"
import type { TestService } from "../harness/service"
import { engine } from "../harness/store"
import { WorkLoops, workOf } from "../harness/work-loops"

/** Runs the queue as a server does, by the providers of the projects, until every message that is due is settled. */
export async function deliverPushes({ parts, store }: TestService): Promise<void> {
  const { secrets, open_providers: providers, device_fates: fates } = parts
  const kind = "push_provider" as const
  const provider = new Failover<OutgoingPush>({ store, kind, providers, breaking: FAULTS })
  const nobody = { ...parts, provider: {} as never, sandbox: undefined, concurrency: 1 }
  const push = { store, secrets, provider, fates, concurrency: 4 }
  const loop = new WorkLoops({
    ...{ store, work: workOf(parts, channelTable(nobody, { push }), parts), concurrency: 4 },
    ...{ lease_ms: 30_000, alone: engine === "sqlite" },
  })
  await loop.start()
  while (await isAnyOpen(parts)) await sleep(5)
  await loop.stop(5_000)
  await provider.close()
}
