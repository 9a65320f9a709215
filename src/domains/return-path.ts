import { and, eq } from "drizzle-orm"
import { settings } from "../core/config"
import { cached } from "../store/cached"
import { prepared } from "../store/statements"
import type { Reader } from "../store/store"
import { covering } from "./sending-domains"
import { domains } from "./tables"

/**
 * The host where reports about mail from this domain arrive: that of the domain, while the MX record of its return path is
 * there, else the host of this instance; undefined with neither.
 */
export async function returnPathHost(
  db: Reader,
  project_id: string,
  name: string | null,
): Promise<string | undefined> {
  const own = name === null ? undefined : await ownHost(db, project_id, name)
  return own ?? settings()["domains.host"]?.toLowerCase()
}

/** By project and name. Every delivery asks; on Postgres it is read each time. */
const ownHosts = cached<string | undefined>({ tables: ["domains"] })

const ownHost = async (db: Reader, project_id: string, name: string) =>
  ownHosts(db, `${project_id} ${name}`, () => readOwnHost(db, project_id, name))

async function readOwnHost(db: Reader, project_id: string, name: string) {
  const row = await covering(db, project_id, name)
  if (!row) return undefined
  const [found] = await findDomain(db, { project_id, domain: row.domain })
  if (found?.records.return_path?.status !== "verified") return undefined
  return `${found.return_path}.${found.domain}`
}

const findDomain = prepared(
  { project_id: domains.project_id, domain: domains.domain },
  (db: Reader, slot) =>
    db
      .select({
        domain: domains.domain,
        return_path: domains.return_path,
        records: domains.records,
      })
      .from(domains)
      .where(and(eq(domains.project_id, slot.project_id), eq(domains.domain, slot.domain))),
)
