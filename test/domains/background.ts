import { and, eq, inArray, lte, ne } from "drizzle-orm"
import { millis, now } from "../../src/core/time"
import { runCheck } from "../../src/domains/check-job"
import { type DueCheck, domainCheck } from "../../src/domains/check-schedule"
import { domainRemoved } from "../../src/domains/domains"
import { events } from "../../src/events/tables"
import { bind } from "../../src/jobs/jobs"
import { jobs } from "../../src/jobs/tables"
import { failMailFrom } from "../../src/messages/removed-domain-mail"
import type { TestProject, TestService } from "../harness/service"
import { engine } from "../harness/store"
import { WorkLoops } from "../harness/work-loops"

/** Runs what is due now of the work that domains bring, and returns when it is done. */
export async function runDue({ parts }: TestService) {
  const { store, domains, rules } = parts
  const names = [domainCheck.name, domainRemoved.name]
  const handlers = {
    ...bind(domainCheck, runCheck(domains)),
    ...bind(domainRemoved, failMailFrom(store, rules)),
  }
  // What other handlers would take is none of theirs: it waits for tomorrow.
  const later = new Date(millis() + 86_400_000).toISOString()
  const others = and(ne(jobs.name, domainCheck.name), ne(jobs.name, domainRemoved.name))
  await store.tx((tx) => tx.update(jobs).set({ run_at: later }).where(others))
  const open = () => {
    const due = and(inArray(jobs.name, names), lte(jobs.run_at, now()))
    return store.read.select({ id: jobs.id }).from(jobs).where(due)
  }
  const alone = engine === "sqlite"
  const loop = new WorkLoops({ store, work: { handlers }, concurrency: 4, lease_ms: 30_000, alone })
  await loop.start()
  while ((await open()).length > 0) await Bun.sleep(2)
  await loop.stop(20_000)
}

/** The types of what happened to the domains of a project, in order, with their data. */
export async function told({ parts }: TestService, { project_id }: TestProject) {
  const rows = await parts.store.read.select().from(events).where(eq(events.project_id, project_id))
  return rows
    .filter(({ type }) => type.startsWith("domain."))
    .sort((one, other) => (one.id < other.id ? -1 : 1))
    .map(({ type, data }) => ({ type, data: data as Record<string, unknown> }))
}

/** The checks that wait for a domain, whether the domain wants them or not. */
export async function waiting({ parts }: TestService, domain_id: string): Promise<DueCheck[]> {
  const rows = await parts.store.read.select().from(jobs).where(eq(jobs.name, domainCheck.name))
  return rows.map(({ payload }) => payload as DueCheck).filter((one) => one.domain_id === domain_id)
}
