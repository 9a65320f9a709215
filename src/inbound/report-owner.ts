import type { Secrets } from "../core/secrets"
import { ownerOfDomain } from "../domains/receiving"
import type { Reader } from "../store/store"
import { firstProject } from "../tenancy/setup"
import { messageById, provenIn } from "./correlate"
import type { ReadMail } from "./parse-inbound-task"

interface ReportOwner {
  account_id: string
  project_id: string
}

/**
 * The project of a mail to an address of the instance: that of the message which a complaint returns,
 * or the one that verified the domain of a report. All other mail is the operator's: it goes to the
 * oldest project. Undefined where there is no project at all.
 */
export async function ownerOfReport(
  { read, secrets }: { read: Reader; secrets: Secrets },
  { kind, returned }: Pick<ReadMail, "kind" | "returned">,
): Promise<ReportOwner | undefined> {
  if (kind.kind === "complaint") {
    const id = provenIn(secrets, returned ?? {}, kind.arf.original_mail_from)
    const message = id === undefined ? undefined : await messageById(read, id)
    if (message) return message
  }
  const domain = reportedDomain(kind)
  const owner = domain ? await ownerOfDomain(read, domain.toLowerCase()) : undefined
  if (owner) return owner
  const [first] = await firstProject(read)
  return first
}

function reportedDomain(kind: ReadMail["kind"]): string | null {
  if (kind.kind === "tls_report") return kind.report.policies[0]?.policy_domain ?? null
  return kind.kind === "dmarc_report" && "domain" in kind.report ? kind.report.domain : null
}
