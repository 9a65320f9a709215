import type { AudienceChannel } from "../lib/preferences"
import { html, type Markup } from "./html"

const EN = {
  /** The language in its own words, for the switch. */
  name: "English",
  direction: "ltr" as "ltr" | "rtl",
  language: "Language",
  help: "Help",
  unsubscribe: "Unsubscribe",
  question: (kind: Markup, address: Markup) => html`Stop emails of the kind ${kind} to ${address}?`,
  done_title: "You are unsubscribed",
  done: (kind: Markup, address: Markup) =>
    html`${address} gets no more emails of the kind ${kind}. Other emails are not affected.`,
  to_preferences: "Change which emails you get",
  preferences: "Email settings",
  choose: (address: Markup) => html`Choose which emails ${address} gets.`,
  /** Title and first sentence where there are other channels than email. */
  message_preferences: "Message settings",
  choose_messages: (address: Markup) =>
    html`Choose which messages you get. This page is for ${address}.`,
  /** `all` is the choice that stands above the kinds. */
  channels: {
    email: { all: "Emails from this sender", kinds: "Kinds of email" },
    push: { all: "Push notifications from this sender", kinds: "Kinds of push notification" },
    sms: { all: "Text messages from this sender", kinds: "Kinds of text message" },
    in_app: { all: "Messages in the app", kinds: "Kinds of message in the app" },
  } satisfies Record<AudienceChannel, { all: string; kinds: string }>,
  broadcast: "News to all recipients",
  save: "Save",
  none: "Unsubscribe from all",
  saved: "Your choice is saved.",
  invalid_title: "This link is not valid",
  invalid: "The link is incomplete, or it never existed. Please open it again from the email.",
}

/** The texts of the pages for recipients of mail, in one language. */
export type UnsubscribeWords = typeof EN

const DE: UnsubscribeWords = {
  name: "Deutsch",
  direction: "ltr",
  language: "Sprache",
  help: "Hilfe",
  unsubscribe: "Abmelden",
  question: (kind, address) => html`Keine E-Mails der Art ${kind} mehr an ${address} senden?`,
  done_title: "Sie sind abgemeldet",
  done: (kind, address) =>
    html`${address} erhält keine E-Mails der Art ${kind} mehr. Andere E-Mails sind davon nicht betroffen.`,
  to_preferences: "Auswählen, welche E-Mails Sie erhalten",
  preferences: "E-Mail-Einstellungen",
  choose: (address) => html`Wählen Sie, welche E-Mails ${address} erhält.`,
  message_preferences: "Nachrichten-Einstellungen",
  choose_messages: (address) =>
    html`Wählen Sie, welche Nachrichten Sie erhalten. Diese Seite gilt für ${address}.`,
  channels: {
    email: { all: "E-Mails von diesem Absender", kinds: "Arten von E-Mails" },
    push: { all: "Push-Mitteilungen dieses Absenders", kinds: "Arten von Push-Mitteilungen" },
    sms: { all: "SMS dieses Absenders", kinds: "Arten von SMS" },
    in_app: { all: "Nachrichten in der App", kinds: "Arten von Nachrichten in der App" },
  },
  broadcast: "Neuigkeiten an alle",
  save: "Speichern",
  none: "Von allem abmelden",
  saved: "Ihre Auswahl ist gespeichert.",
  invalid_title: "Dieser Link ist nicht gültig",
  invalid:
    "Der Link ist unvollständig, oder es gab ihn nie. Bitte öffnen Sie ihn noch einmal aus der E-Mail.",
}

const FR: UnsubscribeWords = {
  name: "Français",
  direction: "ltr",
  language: "Langue",
  help: "Aide",
  unsubscribe: "Se désabonner",
  question: (kind, address) => html`Ne plus envoyer d’e-mails du type ${kind} à ${address}\u00a0?`,
  done_title: "Désabonnement effectué",
  done: (kind, address) =>
    html`${address} ne recevra plus d’e-mails du type ${kind}. Les autres e-mails ne sont pas concernés.`,
  to_preferences: "Choisir les e-mails que vous recevez",
  preferences: "Préférences d’e-mail",
  choose: (address) => html`Choisissez les e-mails que reçoit ${address}.`,
  message_preferences: "Préférences de messages",
  choose_messages: (address) =>
    html`Choisissez les messages que vous recevez. Cette page concerne ${address}.`,
  channels: {
    email: { all: "E-mails de cet expéditeur", kinds: "Types d’e-mails" },
    push: { all: "Notifications push de cet expéditeur", kinds: "Types de notifications push" },
    sms: { all: "SMS de cet expéditeur", kinds: "Types de SMS" },
    in_app: { all: "Messages dans l’application", kinds: "Types de messages dans l’application" },
  },
  broadcast: "Actualités pour tous",
  save: "Enregistrer",
  none: "Se désabonner de tout",
  saved: "Votre choix est enregistré.",
  invalid_title: "Ce lien n’est pas valide",
  invalid:
    "Le lien est incomplet ou n’a jamais existé. Veuillez l’ouvrir à nouveau depuis l’e-mail.",
}

const ES: UnsubscribeWords = {
  name: "Español",
  direction: "ltr",
  language: "Idioma",
  help: "Ayuda",
  unsubscribe: "Cancelar la suscripción",
  question: (kind, address) => html`¿Dejar de enviar correos del tipo ${kind} a ${address}?`,
  done_title: "Suscripción cancelada",
  done: (kind, address) =>
    html`${address} ya no recibirá correos del tipo ${kind}. Los demás correos no cambian.`,
  to_preferences: "Elegir qué correos recibe",
  preferences: "Preferencias de correo",
  choose: (address) => html`Elija qué correos recibe ${address}.`,
  message_preferences: "Preferencias de mensajes",
  choose_messages: (address) => html`Elija qué mensajes recibe. Esta página es para ${address}.`,
  channels: {
    email: { all: "Correos de este remitente", kinds: "Tipos de correo" },
    push: { all: "Notificaciones push de este remitente", kinds: "Tipos de notificaciones push" },
    sms: { all: "SMS de este remitente", kinds: "Tipos de SMS" },
    in_app: { all: "Mensajes en la aplicación", kinds: "Tipos de mensajes en la aplicación" },
  },
  broadcast: "Novedades para todos",
  save: "Guardar",
  none: "Cancelar todas las suscripciones",
  saved: "Su elección se ha guardado.",
  invalid_title: "Este enlace no es válido",
  invalid: "El enlace está incompleto o nunca existió. Ábralo de nuevo desde el correo.",
}

const AR: UnsubscribeWords = {
  name: "العربية",
  direction: "rtl",
  language: "اللغة",
  help: "مساعدة",
  unsubscribe: "إلغاء الاشتراك",
  question: (kind, address) => html`هل تريد إيقاف رسائل البريد من نوع ${kind} إلى ${address}؟`,
  done_title: "تم إلغاء اشتراكك",
  done: (kind, address) =>
    html`لن يتلقى ${address} أي رسائل بريد من نوع ${kind} بعد الآن. لا تتأثر الرسائل الأخرى.`,
  to_preferences: "اختيار الرسائل التي تتلقاها",
  preferences: "إعدادات البريد الإلكتروني",
  choose: (address) => html`اختر رسائل البريد التي يتلقاها ${address}.`,
  message_preferences: "إعدادات الرسائل",
  choose_messages: (address) => html`اختر الرسائل التي تتلقاها. هذه الصفحة خاصة بـ ${address}.`,
  channels: {
    email: { all: "رسائل البريد من هذا المرسل", kinds: "أنواع رسائل البريد" },
    push: { all: "الإشعارات الفورية من هذا المرسل", kinds: "أنواع الإشعارات الفورية" },
    sms: { all: "الرسائل النصية من هذا المرسل", kinds: "أنواع الرسائل النصية" },
    in_app: { all: "الرسائل داخل التطبيق", kinds: "أنواع الرسائل داخل التطبيق" },
  },
  broadcast: "أخبار لجميع المستلمين",
  save: "حفظ",
  none: "إلغاء الاشتراك من الكل",
  saved: "تم حفظ اختيارك.",
  invalid_title: "هذا الرابط غير صالح",
  invalid: "الرابط غير مكتمل أو لم يكن موجودًا من قبل. يرجى فتحه مرة أخرى من رسالة البريد.",
}

export const WORDS = { en: EN, de: DE, fr: FR, es: ES, ar: AR }

export type PageLanguage = keyof typeof WORDS

export const LANGUAGES = Object.keys(WORDS) as PageLanguage[]
