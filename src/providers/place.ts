import type { SnsPlace } from "./sns/signature"

/** What this instance allows and has, by the operator's settings. */
export interface ProviderPlace {
  /** Networks where a relay that a project names may be, besides the public internet. */
  allow_private: readonly string[]
  has_mailbox: boolean
  sns: SnsPlace
  /** Null where the instance itself does not deliver by SES. */
  own_ses: OwnSes | null
}

/** How notifications of the instance's own SES are known. */
export interface OwnSes {
  callback_hash: string
  /** Another one with other credentials. */
  credentials_id: string
}
