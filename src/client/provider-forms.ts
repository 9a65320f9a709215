import type { ProviderForm } from "./provider-form"

/** Written by `bun run generate`: what the credentials of each provider are. */
export const providerForms: readonly ProviderForm[] = [
  { name: "mailbox", channel: "email", about: "the embedded mailbox", fields: {  } },
  { name: "direct", channel: "email", about: "the recipients' mail servers", fields: {  } },
  { name: "smtp", channel: "email", about: "an SMTP relay", example: "--host smtp.example.com --username apikey --secret-stdin < secret", fields: { host: { type: "string", about: "host name of the relay" }, port: { type: "integer", about: "port of the relay", fallback: 587 }, username: { type: "string", about: "user name", value: "name" }, password: { type: "string", about: "password", secret: true, asked_with: "username" }, tls: { type: "string", about: "starttls, implicit or none", value: "mode", fallback: "starttls" } } },
  { name: "ses", channel: "email", about: "Amazon SES", example: "--region eu-west-1 --access-key-id AKIA… --secret-stdin < secret", fields: { region: { type: "string", about: "AWS region, for example eu-west-1" }, access_key_id: { type: "string", about: "id of the access key", secret: true }, secret_access_key: { type: "string", about: "secret access key", secret: true, asked_with: "access_key_id" }, configuration_set: { type: "string", about: "configuration set that publishes the events", value: "name" } } },
  { name: "twilio", channel: "sms", about: "Twilio", example: "--account-sid AC… --secret-stdin < auth-token", fields: { account_sid: { type: "string", about: "account SID, which begins with AC" }, auth_token: { type: "string", about: "auth token of the account, which signs the callbacks", secret: true, asked_with: "account_sid" }, api_key_sid: { type: "string", about: "SID of an API key that sends in the place of the auth token" }, api_key_secret: { type: "string", about: "secret of the API key", secret: true, asked_with: "api_key_sid" } } },
]
