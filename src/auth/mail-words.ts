import type { MailType } from "./environment-settings"

interface TypeWords {
  subject: string
  /** The heading, where it is not the subject. */
  title?: string
  text: string
  button?: string
}

const EN = {
  direction: "ltr" as "ltr" | "rtl",
  link_note: "The link works once, for {{expires_in}}.",
  code_note: "The code works once, for {{expires_in}}.",
  or_code: "Or enter this code:",
  copy: "If the button does not work, copy this address into your browser:",
  ignore: "If you did not ask for this, ignore this email.",
  alarm: "If this was not you, change your password at once.",
  device: "Device",
  ip: "IP address",
  time: "Time",
  help: "Help",
  types: {
    verify_email: {
      subject: "Confirm your email address",
      text: "Confirm that this is your address, so that you can use it at {{app_name}}.",
      button: "Confirm address",
    },
    magic_link: {
      subject: "Sign in to {{app_name}}",
      text: "With this button you sign in. You need no password.",
      button: "Sign in",
    },
    email_otp: {
      subject: "{{code}} is your code for {{app_name}}",
      title: "Your code for {{app_name}}",
      text: "Enter this code to continue. Do not tell it to anybody.",
    },
    password_reset: {
      subject: "Choose a new password for {{app_name}}",
      text: "Somebody asked for a new password of your account. With this button you choose it.",
      button: "Choose a new password",
    },
    password_changed: {
      subject: "Your password for {{app_name}} was changed",
      text: "The password of your account was changed.",
    },
    mfa_code: {
      subject: "{{code}} is your second code for {{app_name}}",
      title: "Your second code for {{app_name}}",
      text: "Enter this code to complete your sign-in. Do not tell it to anybody.",
    },
    invitation: {
      subject: "Your invitation to {{app_name}}",
      text: "You are invited to {{app_name}}. With this button you create your account.",
      button: "Accept the invitation",
    },
    organization_invitation: {
      subject: "Your invitation to {{default organization app_name}}",
      text: "You are invited to {{default organization app_name}} at {{app_name}}.",
      button: "Accept the invitation",
    },
    email_changed: {
      subject: "A new email address for your account at {{app_name}}",
      text: "The email address of your account is being changed. The new one gets a code first.",
    },
    new_device: {
      subject: "New sign-in to {{app_name}}",
      text: "Somebody signed in to your account from a device or network that is new.",
    },
  } as Record<MailType, TypeWords>,
}

/** The texts of the default mails in one language; Handlebars. */
export type MailWords = typeof EN

export const MAIL_WORDS = { en: EN }

export type MailLanguage = keyof typeof MAIL_WORDS
