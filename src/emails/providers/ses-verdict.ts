import { codeOf } from "../../core/faults"
import { NetError } from "../../core/net"
import type { RecipientOutcome } from "../../providers/provider"
import { SesRefusal } from "../../providers/ses/api"

/** What an answer of SES means, and its words. */
export type SesVerdict = Omit<RecipientOutcome, "email" | "reply"> & { said: string | null }

type Meaning = Omit<SesVerdict, "reason" | "said">

const retry = (fault?: SesVerdict["fault"]): Meaning => ({
  status: "retry",
  bounce_subtype: null,
  code: null,
  ...(fault && { fault }),
})

/** We were too fast: nobody was tried, and nobody need hear of a deferral. */
const TOO_FAST: Meaning = { ...retry("infrastructure"), held: true }

const failed = (fault?: SesVerdict["fault"]): Meaning => ({
  ...retry(fault),
  status: "failed",
  code: "provider_error",
})

/** It will not work for us until somebody changes something there or here. */
const REFUSED = failed("authentication")

const BY_CODE: Record<string, Meaning> = {
  AccessDeniedException: REFUSED,
  AccountSuspendedException: REFUSED,
  ExpiredTokenException: REFUSED,
  IncompleteSignature: REFUSED,
  IncompleteSignatureException: REFUSED,
  InvalidClientTokenId: REFUSED,
  InvalidSignatureException: REFUSED,
  MissingAuthenticationTokenException: REFUSED,
  NotFoundException: REFUSED, // the configuration set
  SendingPausedException: REFUSED,
  SignatureDoesNotMatch: REFUSED,
  UnrecognizedClientException: REFUSED,

  LimitExceededException: retry("infrastructure"),
  ServiceUnavailable: retry("infrastructure"),
  Throttling: TOO_FAST,
  ThrottlingException: TOO_FAST,
  TooManyRequestsException: TOO_FAST,
  ConcurrentModificationException: retry("infrastructure"),

  MailFromDomainNotVerifiedException: failed("infrastructure"),
  BadRequestException: failed(),
}

/** What SES says of a sender, or in its sandbox of a recipient, that it does not know. */
const UNVERIFIED = /not verified/i

/** What an error of the API comes to. What is not of the API is thrown on. */
export function verdictOf(error: unknown): SesVerdict {
  if (error instanceof NetError) {
    return {
      ...retry(isBefore(error) ? "connection" : undefined),
      reason: error.message,
      said: null,
    }
  }
  if (!(error instanceof SesRefusal)) throw error
  const said = `${error.status} ${error.code}: ${error.message}`
  return { ...meaningOf(error), reason: said, said }
}

function meaningOf({ code, status, message }: SesRefusal): Meaning {
  const known = BY_CODE[code]
  if (known) return known
  if (code === "MessageRejected") {
    return UNVERIFIED.test(message) ? failed("infrastructure") : CONTENT
  }
  if (status === 401 || status === 403) return REFUSED
  if (status === 429) return TOO_FAST
  if (status === 503) return retry("infrastructure")
  return status >= 500 ? retry() : failed() // a 5xx may come after it was taken
}

const CONTENT: Meaning = { ...retry(), status: "bounced", bounce_subtype: "ContentRejected" }

/** Whether it ended before the request was on its way: only then was it certainly not taken. */
function isBefore({ kind, cause }: NetError): boolean {
  if (kind === "timeout") return false
  if (kind !== "connection") return true
  return /^(ConnectionRefused|FailedToOpenSocket|ECONNREFUSED|EHOSTUNREACH|ENETUNREACH)$/.test(
    codeOf(cause) ?? "",
  )
}
