import { ACCOUNT_NAME, HERE, PASSWORD_STDIN, PROJECT_NAME } from "../lib/flags"
import { own, type Resource } from "../lib/resource"
import { later } from "../lib/run"

const action = (name: Exclude<keyof typeof import("../local/admin"), "open">) =>
  later<never>(async () => (await import("../local/admin"))[name])

const rotate = later(async () => (await import("../local/master-key")).rotate)
const lostKey = later(async () => (await import("../local/master-key")).lostKey)

const status = (name: "lock" | "suspend" | "unlock", about: string) =>
  own(`${name} <account>`, action(name), {
    about,
    options: [...HERE, ["--reason <text>", "reason; it is stored with the account"]],
  })

const frozen = (name: "freeze" | "unfreeze", about: string) =>
  own(`${name} <account>`, action(name), {
    about,
    example: "--reason phishing",
    options: [...HERE, ["--reason <text>", "reason; the audit log keeps it", "required"]],
  })

const person = (use: string, name: Parameters<typeof action>[0], about: string) =>
  own(`${use} <email>`, action(name), { about, options: HERE })

/** For the person that runs the instance, on its machine: these commands need no credential. */
export const adminResource: Resource = {
  noun: "admin",
  about: "administer the instance, on its own machine",
  example: "admin accounts",
  rows: [
    own("bootstrap", action("bootstrap"), {
      about: "create the first owner, without the setup token",
      example: "--email ann@example.test",
      options: [
        ...HERE,
        ["--email <address>", "email address of the owner"],
        PASSWORD_STDIN,
        ["--name <name>", "name of the owner"],
        ...[ACCOUNT_NAME, PROJECT_NAME],
      ],
    }),
    own("reset-owner <email>", action("resetOwner"), {
      about: "set a new password for a person; all their sessions end",
      word: "ann@example.test",
      options: [...HERE, PASSWORD_STDIN, ["--keep-mfa", "keep the second factor"]],
    }),
    status("lock", "lock an account (id, slug or name): refuse all its requests"),
    status("suspend", "suspend an account that broke the rules: refuse all its requests"),
    status("unlock", "make a locked or suspended account active again"),
    frozen("freeze", "stop all sending of an account (id, slug or name)"),
    frozen("unfreeze", "let a frozen account send again, and count its rates anew"),
    own("accounts", action("accounts"), { about: "list all accounts", options: HERE }),
    own("users", action("users"), { about: "list all people with a login", options: HERE }),
    own("ses-callback", action("sesCallback"), {
      about: "show the URL that gets the SES events of the instance's own mail",
      options: HERE,
    }),
    own("rotate-master-key", rotate, {
      about: "replace the master key, also while the server works",
      options: [
        ...HERE,
        ["--master-key <file>", "file with the new key, 32 bytes in base64 (default: a new one)"],
        ["--end-links", "end the links and addresses of mail that was sent"],
      ],
    }),
    own("lost-key", lostKey, {
      about: "list the secrets that nobody can read any more, because the master key is lost",
      example: ["", "--accept"],
      options: [...HERE, ["--accept", "continue with the key at hand, or with a new one"]],
    }),
    person("lock-user", "lockUser", "end all sessions of a person, and refuse new ones"),
    person("unlock-user", "unlockUser", "let a locked person sign in again"),
    person("grant-operator", "grant", "make a person an operator of the instance"),
    person("withdraw-operator", "withdraw", "take the operator role from a person"),
  ],
}

export const planResource: Resource = {
  noun: "admin plan",
  about: "manage the plans of accounts",
  example: "admin plan set acme pro",
  rows: [
    own("set <account> <plan>", action("setPlan"), {
      about: "set the plan of an account: free, starter, pro, scale or enterprise",
      example: "--limit emails_per_month=500000",
      options: [
        ...HERE,
        ["--limit <name=number>", "limit that replaces the plan's own; may be repeated", "several"],
        ["--no-limits", "remove the limits that --limit set"],
      ],
    }),
  ],
}
