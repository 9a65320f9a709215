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

/** By the `bounce_subtype` of the contract. */
export const blameOf = (bounce_subtype: string): BounceBlame =>
  BLAMES[bounce_subtype] ?? "recipient"
