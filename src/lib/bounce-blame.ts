/** What a permanent refusal is about. Only the first says anything about the address. */
export type BounceBlame = "recipient" | "content" | "infrastructure"

const BLAMES: Record<string, BounceBlame> = {
  NoEmail: "recipient",
  MailboxFull: "recipient",
  General: "recipient",
  Suppressed: "recipient",
  MessageTooLarge: "content",
  ContentRejected: "content",
  AttachmentRejected: "content",
  PolicyRejected: "infrastructure",
  InfrastructureRejected: "infrastructure",
}

/** Of a recipient: one such bounce is enough to know that the address gets no mail. */
const LASTING = new Set(["NoEmail", "MailboxFull", "Suppressed"])

export const isLasting = (bounce_subtype: string): boolean => LASTING.has(bounce_subtype)

/** By the `bounce_subtype` of the contract. */
export const blameOf = (bounce_subtype: string): BounceBlame =>
  BLAMES[bounce_subtype] ?? "recipient"
