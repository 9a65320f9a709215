import type { SnsPlace } from "./sns/signature"

/** What this instance allows and has, by the operator's settings. */
export interface ProviderPlace {
  /** Networks where a relay that a project names may be, besides the public internet. */
  allow_private: readonly string[]
  has_mailbox: boolean
  sns: SnsPlace
}
