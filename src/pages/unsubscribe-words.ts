import { html, type Markup } from "./html"

/** The texts of the pages for recipients of mail, in one language. */
export interface UnsubscribeWords {
  /** The language in its own words, for the switch. */
  name: string
  direction: "ltr" | "rtl"
  language: string
  help: string
  unsubscribe: string
  question: (kind: Markup, address: Markup) => Markup
  done_title: string
  done: (kind: Markup, address: Markup) => Markup
  to_preferences: string
  preferences: string
  choose: (address: Markup) => Markup
  /** The choice that stands above all kinds. */
  all_email: string
  kinds: string
  broadcast: string
  save: string
  none: string
  saved: string
  invalid_title: string
  invalid: string
}

export const WORDS = {
  en: {
    name: "English",
    direction: "ltr",
    language: "Language",
    help: "Help",
    unsubscribe: "Unsubscribe",
    question: (kind, address) => html`Stop emails of the kind ${kind} to ${address}?`,
    done_title: "You are unsubscribed",
    done: (kind, address) =>
      html`${address} gets no more emails of the kind ${kind}. Other emails are not affected.`,
    to_preferences: "Change which emails you get",
    preferences: "Email settings",
    choose: (address) => html`Choose which emails ${address} gets.`,
    all_email: "Emails from this sender",
    kinds: "Kinds of email",
    broadcast: "News to all recipients",
    save: "Save",
    none: "Unsubscribe from all",
    saved: "Your choice is saved.",
    invalid_title: "This link is not valid",
    invalid: "The link is incomplete, or it never existed. Please open it again from the email.",
  },
  de: {
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
    all_email: "E-Mails von diesem Absender",
    kinds: "Arten von E-Mails",
    broadcast: "Neuigkeiten an alle",
    save: "Speichern",
    none: "Von allem abmelden",
    saved: "Ihre Auswahl ist gespeichert.",
    invalid_title: "Dieser Link ist nicht gültig",
    invalid:
      "Der Link ist unvollständig, oder es gab ihn nie. Bitte öffnen Sie ihn noch einmal aus der E-Mail.",
  },
  fr: {
    name: "Français",
    direction: "ltr",
    language: "Langue",
    help: "Aide",
    unsubscribe: "Se désabonner",
    question: (kind, address) =>
      html`Ne plus envoyer d’e-mails du type ${kind} à ${address}\u00a0?`,
    done_title: "Désabonnement effectué",
    done: (kind, address) =>
      html`${address} ne recevra plus d’e-mails du type ${kind}. Les autres e-mails ne sont pas concernés.`,
    to_preferences: "Choisir les e-mails que vous recevez",
    preferences: "Préférences d’e-mail",
    choose: (address) => html`Choisissez les e-mails que reçoit ${address}.`,
    all_email: "E-mails de cet expéditeur",
    kinds: "Types d’e-mails",
    broadcast: "Actualités pour tous",
    save: "Enregistrer",
    none: "Se désabonner de tout",
    saved: "Votre choix est enregistré.",
    invalid_title: "Ce lien n’est pas valide",
    invalid:
      "Le lien est incomplet ou n’a jamais existé. Veuillez l’ouvrir à nouveau depuis l’e-mail.",
  },
  es: {
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
    all_email: "Correos de este remitente",
    kinds: "Tipos de correo",
    broadcast: "Novedades para todos",
    save: "Guardar",
    none: "Cancelar todas las suscripciones",
    saved: "Su elección se ha guardado.",
    invalid_title: "Este enlace no es válido",
    invalid: "El enlace está incompleto o nunca existió. Ábralo de nuevo desde el correo.",
  },
  ar: {
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
    all_email: "رسائل البريد من هذا المرسل",
    kinds: "أنواع رسائل البريد",
    broadcast: "أخبار لجميع المستلمين",
    save: "حفظ",
    none: "إلغاء الاشتراك من الكل",
    saved: "تم حفظ اختيارك.",
    invalid_title: "هذا الرابط غير صالح",
    invalid: "الرابط غير مكتمل أو لم يكن موجودًا من قبل. يرجى فتحه مرة أخرى من رسالة البريد.",
  },
} as const satisfies Record<string, UnsubscribeWords>

export type PageLanguage = keyof typeof WORDS

export const LANGUAGES = Object.keys(WORDS) as PageLanguage[]
