import { type SenderAuthentication, senderAuthentication } from "../domains/sender-authentication"
import type { RecordPurpose } from "../domains/tables"
import { refusalText } from "../providers/refused-return-paths"
import type { Reader } from "../store/store"
import { MAILBOX_DOMAIN, type SendRules } from "./prepare"

/** What one check of the sender says. None of them is a reason to refuse the mail. */
interface SenderCheck {
  name: (typeof NAMES)[number]
  outcome: "pass" | "warn"
  detail: string
}

type Named = Omit<SenderCheck, "name">

interface SenderToCheck {
  db: Reader
  project_id: string
  /** Of From, in the form in which domains compare. */
  domain: string
  rules: Pick<SendRules, "sending_domains" | "to_mailbox">
}

/**
 * What receivers will make of the sender: the records of its domain as the last check saw them, and
 * whether the domains of DKIM and of the return path stand beside the From domain (RFC 7489, 3.1).
 */
export async function authenticationChecks(sender: SenderToCheck): Promise<SenderCheck[]> {
  const { db, project_id, domain, rules } = sender
  if (rules.to_mailbox && domain === MAILBOX_DOMAIN) {
    return everyOne({
      outcome: "pass",
      detail: "The embedded mailbox takes the mail. It asks for no records.",
    })
  }
  const found = await senderAuthentication(db, project_id, domain)
  if (found?.status === "verified") return checksOf(found)
  const detail = rules.sending_domains.has(domain)
    ? `The operator lists ${domain} in sending_domains. Its records were not looked at.`
    : `${domain} is not verified, so its records are not known.`
  return everyOne({ outcome: "warn", detail })
}

const NAMES = ["authentication", "dkim_alignment", "spf_alignment", "dmarc"] as const

const everyOne = (outcome: Named): SenderCheck[] => NAMES.map((name) => ({ name, ...outcome }))

function checksOf(found: SenderAuthentication): SenderCheck[] {
  return [
    { name: "authentication", ...authenticated(found) },
    { name: "dkim_alignment", ...signed(found) },
    { name: "spf_alignment", ...returned(found) },
    { name: "dmarc", ...policy(found) },
  ]
}

const isThere = ({ records }: SenderAuthentication, purpose: RecordPurpose) =>
  records[purpose]?.status === "verified"

const lacks = (names: string[], domain: string) =>
  `The last check did not find the ${names.join(" and the ")} record of ${domain}. Run a check of the domain and mend it.`

function authenticated(found: SenderAuthentication): Named {
  const missing = (["dkim", "spf"] as const).filter((purpose) => !isThere(found, purpose))
  if (missing.length > 0) {
    return {
      outcome: "warn",
      detail: lacks(
        missing.map((one) => one.toUpperCase()),
        found.domain,
      ),
    }
  }
  return {
    outcome: "pass",
    detail: `The DKIM key and the SPF record of ${found.domain} are published.`,
  }
}

function signed(found: SenderAuthentication): Named {
  if (isThere(found, "dkim")) {
    return { outcome: "pass", detail: `The signature is of ${found.domain}, as is From.` }
  }
  return {
    outcome: "warn",
    detail: `Without its DKIM record, no signature speaks for ${found.domain}.`,
  }
}

/** Of the envelope sender as it is sent. */
function returned(found: SenderAuthentication): Named {
  const { reports_host: host, refusal } = found
  if (host && refusal) return { outcome: "warn", detail: refusalText(host, refusal) }
  if (isThere(found, "return_path")) {
    return {
      outcome: "pass",
      detail: `Reports go to ${found.return_path}, which is below the From domain.`,
    }
  }
  const detail =
    host === undefined
      ? `The MX record of ${found.return_path} is not there. The envelope sender is the address of From.`
      : `The MX record of ${found.return_path} is not there. Reports go to ${host}, so only DKIM is aligned.`
  return { outcome: "warn", detail }
}

function policy(found: SenderAuthentication): Named {
  const record = found.records.dmarc?.found.find((value) => /^v=DMARC1\b/i.test(value))
  if (!record) return { outcome: "warn", detail: lacks(["DMARC"], found.domain) }
  const word = /;\s*p\s*=\s*(\w+)/i.exec(record)?.[1]?.toLowerCase() ?? "none"
  const detail = POLICIES[word] ?? `The policy ${JSON.stringify(word)} is not known to receivers.`
  return { outcome: Object.hasOwn(POLICIES, word) ? "pass" : "warn", detail }
}

const POLICIES: Record<string, string> = {
  none: "The policy is none: receivers report mail that fails, and take it.",
  quarantine: "The policy is quarantine: mail that fails goes to the spam folder.",
  reject: "The policy is reject: mail that fails is refused.",
}
