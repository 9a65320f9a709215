import type { ProviderForm } from "./provider-form"

/** Written by `bun run generate`: what the credentials of each provider are. */
export const providerForms: readonly ProviderForm[] = [
  { name: "mailbox", channel: "email", about: "the embedded mailbox", fields: {  } },
  { name: "direct", channel: "email", about: "the recipients' mail servers", fields: {  } },
  { name: "smtp", channel: "email", about: "an SMTP relay", example: "--host smtp.example.com --username apikey --secret-stdin < secret", fields: { host: { type: "string", about: "host name of the relay" }, port: { type: "integer", about: "port of the relay", fallback: 587 }, username: { type: "string", about: "user name", value: "name" }, password: { type: "string", about: "password", secret: true, asked_with: "username" }, tls: { type: "string", about: "starttls, implicit or none", value: "mode", fallback: "starttls" } } },
  { name: "ses", channel: "email", about: "Amazon SES", example: "--region eu-west-1 --access-key-id AKIA… --secret-stdin < secret", fields: { region: { type: "string", about: "AWS region, for example eu-west-1" }, access_key_id: { type: "string", about: "id of the access key", secret: true }, secret_access_key: { type: "string", about: "secret access key", secret: true, asked_with: "access_key_id" }, configuration_set: { type: "string", about: "configuration set that publishes the events", value: "name" } } },
]
