import type { Tx } from "../store/store"
import type { Issued } from "./invitations"

/** Sends mail of the instance itself, in the transaction of what it tells. */
export interface Mail {
  send(
    tx: Tx,
    mail: { to: string; subject: string; text: string; html?: string; kind: string },
  ): Promise<unknown>
}

export interface Post {
  mail: Mail
  /** Without a slash at the end: where people reach this instance. */
  base_url: () => string
}

const CALLED = { owner: "an owner", admin: "an admin", billing_admin: "a billing admin" }

/** The only place that ever sees the token again. */
export async function sendInvitation(tx: Tx, { mail, base_url }: Post, issued: Issued) {
  const { invitation, token, account_name } = issued
  const role = invitation.role === "member" ? "a member" : CALLED[invitation.role]
  const link = `${base_url()}/invitation/${token}`
  const text = [
    `You are invited to join ${account_name} on Belfry as ${role}.`,
    `Open this page to accept:\n${link}`,
    `Or use the command line:\nbelfry invitations accept ${token} --url ${base_url()}`,
    `The invitation ends at ${invitation.expires_at}. If you did not expect it, do nothing.`,
  ].join("\n\n")
  const subject = `Invitation to ${account_name}`
  await mail.send(tx, { to: invitation.email, subject, text, kind: "invitation" })
}
