import { accountRows, useProjectRow } from "./commands/accounts"
import { adminResource, planResource } from "./commands/admin"
import { authoring } from "./commands/ai"
import { oauthResource } from "./commands/application-oauth"
import { applicationResources } from "./commands/applications"
import { categoryRows } from "./commands/categories"
import { completionRow } from "./commands/completion"
import { deviceRows } from "./commands/devices"
import { domainRows } from "./commands/domains"
import { emailRows } from "./commands/emails"
import { eventRows, triggerRow } from "./commands/events"
import { inboundRouteRows, inboundRows } from "./commands/inbound"
import { inboxRows } from "./commands/inbox"
import { jobRows, routesRow } from "./commands/jobs"
import { keyRows } from "./commands/keys"
import { backupResource, configResource, databaseResource, localRows } from "./commands/local"
import { deleteUserRow, enrollRow, loginRows } from "./commands/login"
import { logRows } from "./commands/logs"
import { mailboxRows } from "./commands/mailbox"
import { mcpRow } from "./commands/mcp"
import { organizationResources } from "./commands/orgs"
import { preferenceRows } from "./commands/preferences"
import { profileResource } from "./commands/profiles"
import { isMember, memberId, projectRows } from "./commands/projects"
import { providerRows } from "./commands/providers"
import { pushRows } from "./commands/push"
import { pushConfigRows } from "./commands/push-config"
import { queueRows } from "./commands/queue"
import { reputation } from "./commands/reputation"
import { scheduledRows } from "./commands/scheduled"
import { acceptRow, passwordRows, signUpRows } from "./commands/setup"
import { smsRows } from "./commands/sms"
import { smtpResource } from "./commands/smtp"
import { subscriberResource } from "./commands/subscribers"
import { suppressionRows } from "./commands/suppressions"
import { templateRows } from "./commands/templates"
import { topicResource } from "./commands/topics"
import { auditRow, settingRows, usageRows } from "./commands/usage"
import { factorResource } from "./commands/user-factors"
import { userResource } from "./commands/users"
import { listenRow, webhookRows } from "./commands/webhooks"
import { usage } from "./lib/errors"
import { YOUR_NAME } from "./lib/flags"
import { twoPasswords } from "./lib/prompts"
import { asks, ID, type Resource, row } from "./lib/resource"
import { ago, idColumn, wide } from "./lib/table"

/** Every command, by its noun. Rows that need more than their route stand in commands/<noun>.ts. */
export const resources: readonly Resource[] = [
  {
    noun: "emails",
    about: "send, read and follow email",
    example: ["emails list", "emails tail"],
    rows: emailRows,
  },
  {
    noun: "push",
    about: "send, read and count push messages to devices",
    example: ["push list", "push send 'Your table is ready' --to user-42"],
    rows: pushRows,
  },
  {
    noun: "push config",
    about: "manage the credentials of the push services",
    rows: pushConfigRows,
  },
  {
    noun: "devices",
    about: "manage the devices that get push messages",
    example: "devices list --user-id user-42",
    rows: deviceRows,
  },
  {
    noun: "sms",
    about: "send, read and count texts to phones",
    example: ["sms list", "sms send +14155550116 'Your table is ready'"],
    rows: smsRows,
  },
  {
    noun: "scheduled",
    about: "read and cancel messages that wait for their time",
    example: "scheduled list",
    rows: scheduledRows,
  },
  {
    noun: "templates",
    about: "manage, render and test templates",
    example: ["templates list", "templates render receipt --var name=Ann"],
    rows: templateRows,
  },
  authoring,
  {
    noun: "inbound",
    about: "read, wait for and answer received mail",
    example: ["inbound list", "inbound wait --to ann@in.acme.test --since 1m --extract otp"],
    rows: inboundRows,
  },
  {
    noun: "inbound routes",
    about: "decide what happens with mail to an address",
    rows: inboundRouteRows,
  },
  subscriberResource,
  {
    noun: "subscribers preferences",
    about: "show and change what subscribers chose",
    example: ["subscribers preferences get user-42", "subscribers preferences default"],
    rows: preferenceRows,
  },
  {
    noun: "categories",
    about: "manage the kinds of messages that subscribers choose among",
    example: ["categories list", "categories create --name Newsletter"],
    rows: categoryRows,
  },
  {
    noun: "inbox",
    about: "send to the in-app inboxes of subscribers, and follow them",
    example: ["inbox send --to user-42 --title Hello", "inbox tail --external-id user-42"],
    rows: inboxRows,
  },
  userResource,
  factorResource,
  ...organizationResources,
  {
    noun: "logs",
    about: "list and follow the API requests of the last days",
    example: "logs tail --status 4xx",
    rows: logRows,
  },
  {
    noun: "suppressions",
    about: "manage the addresses that get no mail",
    example: ["suppressions list --reason bounce", "suppressions check ann@acme.test"],
    rows: suppressionRows,
  },
  topicResource,
  {
    noun: "domains",
    about: "manage sending domains and their DNS records",
    example: ["domains add acme.test", "domains check acme.test --watch"],
    rows: domainRows,
  },
  {
    noun: "providers",
    about: "manage the providers that deliver the project's messages",
    example: "providers list",
    rows: providerRows,
  },
  {
    noun: "mailbox",
    about: "read the mail that the embedded mailbox caught",
    example: ["mailbox list", "mailbox wait --to ann@mailbox.test"],
    rows: mailboxRows,
  },
  {
    noun: "events",
    about: "list and follow the events of the project",
    example: "events list --follow",
    rows: eventRows,
  },
  {
    noun: "webhooks",
    about: "manage endpoints that receive events",
    example: "webhooks list",
    rows: webhookRows,
  },
  {
    noun: "jobs",
    about: "show and cancel long work in the background",
    example: `jobs get ${ID}`,
    rows: jobRows,
  },
  ...applicationResources,
  oauthResource,
  {
    noun: "keys",
    about: "manage the API keys of the project",
    example: "keys list",
    rows: keyRows,
  },
  {
    noun: "me",
    about: "manage your name, password, second factor and sessions",
    example: ["me get", "me mfa enroll"],
    rows: [
      row("get", "GET /v1/users/me", { about: "show your user" }),
      row("update", "PATCH /v1/users/me", {
        example: "--name Ann --timezone Europe/Vienna",
        flags: {
          name: YOUR_NAME[1],
          locale: "language as a BCP 47 tag, for example en or de-AT",
          timezone: "time zone, for example Europe/Vienna",
        },
      }),
      row("password", "POST /v1/users/me/password", {
        about: "change your password; your other sessions end",
        flags: { current_password: false, new_password: false },
        options: [
          ["--password-stdin", "read the old and the new password from stdin, one per line"],
        ],
        input: async ({ passwordStdin }, _, context) => {
          const given = { passwordStdin: passwordStdin === true }
          const [current_password, new_password] = await twoPasswords(context, given)
          return { current_password, new_password }
        },
        done: () => "the password is changed; your other sessions have ended",
      }),
      row("approve <code>", "POST /v1/session/device/approve", {
        about: "approve the sign-in of the program that shows this code, or deny it",
        word: "BCDF-GHJK",
        flags: { approve: false },
        options: [["--deny", "refuse the sign-in"]],
        input: ({ deny }) => ({ approve: !deny }),
        done: ({ approved }) =>
          approved ? "the program is signed in as you" : "the sign-in of the program is refused",
      }),
      deleteUserRow,
    ],
  },
  {
    noun: "password",
    about: "replace a password that you forgot",
    rows: passwordRows,
  },
  {
    noun: "me mfa",
    about: "manage your second factor",
    example: "me mfa enroll",
    rows: [
      enrollRow,
      row("verify <code>", "POST /v1/users/me/mfa/verify", {
        about: "turn the second factor on, with a code of your app",
        done: () => "every sign-in now needs a code",
      }),
      row("disable <code>", "POST /v1/users/me/mfa/disable", {
        about: "turn the second factor off, with a code or a backup code",
        done: () => "a sign-in now needs only the password",
      }),
    ],
  },
  {
    noun: "me sessions",
    about: "manage the sessions in which you are signed in",
    rows: [
      row("list", "GET /v1/users/me/sessions", {
        about: "list your sessions, newest first",
        columns: {
          "": ({ current }) => (current ? "*" : ""),
          ID: idColumn("session"),
          ADDRESS: "ip",
          PROGRAM: wide(({ client_name, user_agent }) => client_name ?? user_agent),
          USED: ago(({ last_used_at }) => last_used_at),
          SINCE: ago(({ created_at }) => created_at),
        },
      }),
      row("revoke <id>", "DELETE /v1/users/me/sessions/{session_id}", {
        confirm: asks((id) => `Session ${id} will be signed out.`, "revoke"),
        done: () => "the session has ended",
      }),
    ],
  },
  {
    noun: "accounts",
    about: "manage the accounts that you belong to",
    rows: accountRows,
  },
  reputation,
  {
    noun: "projects",
    about: "manage the projects of the account",
    rows: [...projectRows, useProjectRow],
  },
  {
    noun: "members",
    about: "manage the members of the account",
    rows: [
      row("list", "GET /v1/accounts/me/members", {
        about: "list the members of the account, newest first",
        columns: {
          ID: memberId,
          EMAIL: wide(({ email }) => email, "last"),
          NAME: wide(({ name }) => name),
          ROLE: "role",
          MFA: ({ mfa_enabled }) => (mfa_enabled ? "yes" : "no"),
          ACTIVE: ago(({ last_active_at }) => last_active_at, "never"),
        },
      }),
      row("invite <email>", "POST /v1/accounts/me/members/invite", {
        example: `--grant ${ID}=developer`,
        flags: { role: false, projects: false },
        options: [
          ["--role <role>", "role: owner, admin, billing_admin or member (default: member)"],
          ["--grant <project=role>", "role in a project; may be repeated", "several"],
        ],
        input: ({ role = "member", grant = [] }) => ({
          role,
          projects: [grant].flat().map(readGrant),
        }),
        done: ({ id, email }) => `invited ${email} (${id})`,
        next: () => "invitations list",
      }),
      row("set-role <user> <role>", "PATCH /v1/accounts/me/members/{user_id}", {
        about: "set a member's role: owner, admin, billing_admin or member",
        done: isMember,
      }),
      row("remove <user>", "DELETE /v1/accounts/me/members/{user_id}", {
        example: "--yes",
        confirm: asks((person) => `${person} will lose every role in this account.`, "remove"),
        done: ({ id }) => `removed ${id}`,
      }),
    ],
  },
  {
    noun: "invitations",
    about: "manage the invitations to the account",
    rows: [
      row("list", "GET /v1/accounts/me/invitations", {
        about: "list the invitations of the account, newest first",
        example: "--status pending",
        columns: {
          ID: idColumn("invitation"),
          EMAIL: wide(({ email }) => email, "last"),
          ROLE: "role",
          STATUS: "status",
          ENDS: ago(({ expires_at }) => expires_at),
        },
      }),
      row("resend <id>", "POST /v1/accounts/me/invitations/{invitation_id}/resend", {
        about: "send an invitation again, with a new link for 7 days",
        done: ({ email }) => `sent the invitation to ${email} again`,
      }),
      row("revoke <id>", "DELETE /v1/accounts/me/invitations/{invitation_id}", {
        about: "revoke an invitation; its link stops working",
        confirm: asks((id) => `The link of invitation ${id} will stop working.`, "revoke"),
        done: ({ id }) => `revoked ${id}`,
      }),
      row("show <token>", "GET /v1/invitations/{token}", {
        about: "show the account and the role of an invitation that you got",
        example: "--url https://mail.example.test",
        anonymous: true,
      }),
      acceptRow,
    ],
  },
  { noun: "queue", about: "show, pause and resume waiting work", rows: queueRows },
  {
    noun: "usage",
    about: "show the usage of a month, with its limits",
    example: ["usage", "usage --period 2026-11 --json"],
    rows: usageRows,
  },
  {
    noun: "settings",
    about: "show and change the settings of the project",
    rows: settingRows,
  },
  ...[configResource, backupResource, databaseResource],
  ...[smtpResource, adminResource, planResource, profileResource],
  {
    noun: "",
    about: "",
    rows: [
      ...[...localRows, ...loginRows, ...signUpRows],
      ...[auditRow, triggerRow, routesRow, listenRow, mcpRow, completionRow],
    ],
  },
]

/** `<project>=developer` */
function readGrant(text: string | boolean) {
  const [project_id, role] = String(text).split("=")
  if (!project_id || !role) throw usage(`--grant: "${text}" is not <project>=<role>`)
  return { project_id, role }
}
