import { mail } from "../harness/mail"

/** An id of every kind that a path or a body names. */
export type Ids = Record<string, string>

/** What a request of a route looks like, when nothing is wrong with it but who asks. */
export interface Row {
  body?: (ids: Ids) => unknown
  /** Names of ids in the body that belong to somebody, like those of the path. */
  inBody?: string[]
  /** The same of the query, where the route knows such a parameter. */
  inQuery?: string[]
}

const plain: Row = {}
const with_ = (body: unknown): Row => ({ body: () => body })

const newKey = { name: "key", scopes: ["email:read"] }
const password = "Wrong-horse-7"

/** Every route there is. A new one does not pass without a row here. */
export const ROWS: Record<string, Row> = {
  "GET /healthz": plain,
  "GET /readyz": plain,
  "GET /docs": plain,
  "GET /v1/health": plain,
  "GET /v1/openapi.json": plain,

  "GET /v1/setup": plain,
  "POST /v1/setup": with_({ setup_token: "x", email: "a@b.test", password, account_name: "A" }),
  "POST /v1/session": with_({ email: "a@b.test", password }),
  "POST /v1/session/mfa": with_({ token: "x", code: "123456" }),
  "POST /v1/session/refresh": with_({ refresh_token: "x" }),
  "GET /v1/session": plain,
  "DELETE /v1/session": plain,
  "POST /v1/session/device": with_({ client_name: "matrix" }),
  "POST /v1/session/device/token": with_({ device_code: "x" }),
  "POST /v1/session/device/approve": with_({ user_code: "BCDF-GHJK", approve: true }),
  "GET /device": plain,
  "POST /device": plain,
  "POST /v1/users": with_({ email: "new@b.test", password }),
  "GET /v1/users/me": plain,
  "PATCH /v1/users/me": with_({ name: "Somebody" }),
  "DELETE /v1/users/me": with_({ password }),
  "GET /v1/users/me/sessions": plain,
  "DELETE /v1/users/me/sessions/{session_id}": plain,
  "POST /v1/users/me/mfa/enroll": plain,
  "POST /v1/users/me/mfa/verify": with_({ code: "123456" }),
  "POST /v1/users/me/mfa/disable": with_({ code: "123456" }),
  "POST /v1/users/me/password": with_({ current_password: password, new_password: password }),
  "POST /v1/password/forgot": with_({ email: "a@b.test" }),
  "POST /v1/password/reset": with_({ token: "x", new_password: password }),
  "GET /password-reset/{token}": plain,
  "POST /password-reset/{token}": plain,

  "GET /v1/accounts": plain,
  "POST /v1/accounts": with_({ name: "Another" }),
  "GET /v1/accounts/me": plain,
  "PATCH /v1/accounts/me": with_({ name: "Renamed" }),
  "DELETE /v1/accounts/me": with_({ confirm: "not its name" }),
  "POST /v1/accounts/me/restore": plain,
  "POST /v1/accounts/me/transfer": {
    body: ({ user_id }) => ({ user_id }),
    inBody: ["user_id"],
  },
  "GET /v1/accounts/me/plan": plain,
  "GET /v1/accounts/me/project-breakdown": plain,
  "GET /v1/accounts/me/resource-counts": plain,
  "GET /v1/accounts/me/members": plain,
  "PATCH /v1/accounts/me/members/{user_id}": with_({ role: "member" }),
  "DELETE /v1/accounts/me/members/{user_id}": plain,
  "POST /v1/accounts/me/members/invite": {
    body: ({ project_id }) => ({
      email: "guest@b.test",
      role: "member",
      projects: [{ project_id, role: "viewer" }],
    }),
    inBody: ["project_id"],
  },
  "GET /v1/accounts/me/invitations": plain,
  "POST /v1/accounts/me/invitations/{invitation_id}/resend": plain,
  "DELETE /v1/accounts/me/invitations/{invitation_id}": plain,
  "GET /v1/invitations/{token}": plain,
  "POST /v1/invitations/{token}/accept": with_({ name: "Guest", password }),
  "GET /invitation/{token}": plain,
  "POST /invitation/{token}": plain,
  "GET /v1/audit-log": plain,

  "GET /v1/projects": plain,
  "POST /v1/projects": with_({ name: "Third" }),
  "GET /v1/accounts/me/projects": plain,
  "POST /v1/accounts/me/projects": with_({ name: "Third" }),
  "GET /v1/projects/{project_id}": plain,
  "PATCH /v1/projects/{project_id}": with_({ name: "Renamed" }),
  "DELETE /v1/projects/{project_id}": with_({ confirm: "not its name" }),
  "POST /v1/projects/{project_id}/restore": plain,
  "GET /v1/projects/{project_id}/members": plain,
  "POST /v1/projects/{project_id}/members": {
    body: ({ user_id }) => ({ user_id, role: "viewer" }),
    inBody: ["user_id"],
  },
  "PATCH /v1/projects/{project_id}/members/{user_id}": with_({ role: "viewer" }),
  "DELETE /v1/projects/{project_id}/members/{user_id}": plain,

  "GET /v1/usage": { inQuery: ["project_id"] },
  "GET /v1/usage/user-aggregate": plain,
  "POST /v1/usage/reconcile": with_({}),
  "GET /v1/settings": plain,
  "PATCH /v1/settings": with_({ default_reply_to: "help@example.test" }),
  "GET /v1/jobs/{job_id}": plain,
  "POST /v1/jobs/{job_id}/cancel": plain,
  "GET /v1/api-keys": plain,
  "POST /v1/api-keys": with_(newKey),
  "GET /v1/api-keys/{key_id}": plain,
  "PATCH /v1/api-keys/{key_id}": with_({ name: "renamed" }),
  "DELETE /v1/api-keys/{key_id}": plain,
  "POST /v1/api-keys/{key_id}/rotate": with_({}),
  "PUT /v1/api-keys/{key_id}/ip-whitelist": with_({ ip_addresses: [] }),

  "GET /v1/emails": plain,
  "POST /v1/emails": with_(mail()),
  "POST /v1/emails/batch": with_({ messages: [mail()] }),
  "GET /v1/emails/{email_id}": plain,
  "GET /v1/emails/{email_id}/events": plain,
  "POST /v1/emails/{email_id}/events": plain,
  "GET /v1/emails/{email_id}/attempts": plain,
  "GET /v1/emails/{email_id}/content": plain,
  "GET /v1/emails/{email_id}/raw": plain,
  "GET /v1/emails/{email_id}/attachments/{attachment_id}": plain,
  "POST /v1/emails/{email_id}/cancel": plain,
  "POST /v1/emails/{email_id}/resend": with_({}),
  "GET /v1/mailbox": plain,
  "DELETE /v1/mailbox": plain,
  "GET /v1/mailbox/{mail_id}": plain,
  "GET /v1/events": plain,
  "GET /v1/events/{event_id}": plain,
  "POST /v1/events/trigger": with_({ type: "email.sent" }),
  "GET /v1/events/stream": plain,
  "GET /v1/request-log": plain,

  "GET /v1/webhooks": plain,
  "POST /v1/webhooks": with_({ url: "http://127.0.0.1:65000/", events: ["*"] }),
  "GET /v1/webhooks/events": plain,
  "GET /v1/webhooks/{webhook_id}": plain,
  "PATCH /v1/webhooks/{webhook_id}": with_({ description: "changed" }),
  "PUT /v1/webhooks/{webhook_id}": with_({ description: "changed" }),
  "DELETE /v1/webhooks/{webhook_id}": plain,
  "POST /v1/webhooks/{webhook_id}/rotate-secret": with_({}),
  "POST /v1/webhooks/{webhook_id}/enable": with_({}),
  "POST /v1/webhooks/{webhook_id}/disable": plain,
  "POST /v1/webhooks/{webhook_id}/pause": plain,
  "POST /v1/webhooks/{webhook_id}/test": with_({}),
  "GET /v1/webhooks/{webhook_id}/stats": plain,
  "GET /v1/webhooks/{webhook_id}/deliveries": plain,
  "GET /v1/webhooks/{webhook_id}/deliveries/{delivery_id}": plain,
  "POST /v1/webhooks/{webhook_id}/deliveries/{delivery_id}/retry": plain,
  "POST /v1/webhooks/{webhook_id}/deliveries/bulk-retry": with_({}),
  "POST /v1/webhooks/{webhook_id}/replay": with_({ since: "2026-01-01T00:00:00Z" }),
  "GET /v1/queue": plain,
}
