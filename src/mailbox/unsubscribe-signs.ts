/**
 * Stems and phrases that stand near a link which ends a subscription, by language. They are regular
 * expressions over `simplified` texts: a space at an end is the end of a word.
 */
const SIGNS: Record<string, string[]> = {
  english: [
    ...["unsub", " opt(ed)? ?out", " list ?manage", "subscription", " preferences? ", " signoff "],
    ...[" remov(e|al|ing) ", " be removed ", "unfollow"],
    ...[" (leave|quit) (this|the|our|that) (mailing )?list", " take (me|my|us) off", " taken off "],
    ...[" (stop|end|cease) (receiving|getting|sending|these|this|those|all|our|e ?mail|mail|news)"],
    ...[" no (longer|more) (want|wish|like|care|receiv|interest|get|e ?mail|mail|message|news)"],
    ...[
      " (do not|don ?t|does not|doesn ?t|not|rather not|prefer not|never) (want|wish|care|like) ",
    ],
    ...[" (rather|prefer) not (to )?(get|receive|hear|be)", " not (to )?(receive|hear from|get) "],
    ...[" (e ?mail|mail|mailing|notification|newsletter|communication)s? (setting|option|choice)"],
    ...[" (manage|change|update|edit) (your )?(e ?mails?|mails?|mailings?|notif|newsletter|alert)"],
    ...[
      " (turn|switch) off",
      " (mute|disable|deactivate|cancel) (these|this|your|my|the|all|e ?mail)",
    ],
    ...[" cancel (your |my )?(notif|alert|digest|newsletter|updates|membership)", " listserv"],
  ],
  german: [
    ...["abmeld", "abbestell", "austrag", "abonnement", " abo ", "keine (weiteren )?(e )?mail"],
    ...[
      " melde\\p{L}* (.{1,40} )?ab ",
      " bestell\\p{L}* (.{1,60} )?ab ",
      " trag\\p{L}* (.{1,60} )?aus ",
    ],
    ...[
      "(nicht|keine\\p{L}*) (.{1,40} )?(mehr|langer|weiter\\p{L}*) (.{1,30} )?(erhalten|empfangen|bekommen|wunsch)",
    ],
    ...[
      "kundig",
      "widerruf",
      "widersprech",
      "deaktivier",
      "einstellungen (fur|der|ihrer) (e )?mail",
    ],
  ],
  french: [
    ...[
      "desabon",
      "desinscri",
      "ne (plus|pas) (.{1,20} )?recevoir",
      "ne plus etre",
      "resili(er|ez|ation)",
    ],
    ...[
      "ne (souhaite|desire|veu|voule)\\p{L}* (plus|pas)",
      "(annul|retir)\\p{L}* (.{1,20} )?(abonnement|inscription|liste)",
    ],
    ...[" (me|vous) retirer", "gerer (vos|mes|les) (abonnement|preference|e mail|alerte)"],
  ],
  spanish: [
    ...[
      " baja ",
      "cancel(ar|a|e|ad|o) ",
      "desu[bs]*scri",
      "(anul|cancel)\\p{L}* (.{1,20} )?suscripci",
      "suscripci",
    ],
    ...["(no|dejar de) (.{1,20} )?recibir", "desapunt", "eliminar(me)? (.{1,20} )?lista"],
  ],
  portuguese: [
    ...[
      "descadastr",
      "desinscr[ei]",
      "subscricao",
      "inscricao",
      "(deixar de|nao) (.{1,20} )?receber",
    ],
    ...[
      "remov(er|a) (.{1,20} )?(e mail|lista|endereco)",
      " sair da lista",
      "cancelamento",
      "assinatura",
    ],
  ],
  italian: [
    ...[
      "disiscri",
      "disabbon",
      "(annull|cancell|revoc)\\p{L}* (.{1,20} )?(iscrizion|abbonament|sottoscri|registraz)",
    ],
    ...[
      "cancellati ",
      "cancellarsi",
      "cancellarti",
      "non (.{1,20} )?ricever",
      "(non|piu) (desider|vuoi|vuole)",
    ],
  ],
  dutch: [
    ...[
      "uitschrijv",
      "uitgeschrev",
      "afmeld",
      "opzeg",
      " schrijf (.{1,40} )?uit ",
      " meld (.{1,40} )?af ",
    ],
    ...[
      "(niet|geen) (.{1,30} )?(langer|meer) (.{1,30} )?(ontvang|krijg)",
      "wil(t|len)? (.{1,20} )?geen",
    ],
  ],
  nordic: [
    ...[
      "avregistr",
      "avprenumer",
      "avanmal",
      "avbestall",
      "prenumeration",
      "avsluta",
      "(inte|icke) langre",
    ],
    ...[
      "sluta (.{1,20} )?(fa|ta emot) ",
      "avmeld",
      "frameld",
      "afregistr",
      "opsig",
      " meld (.{1,40} )?(av|fra) ",
    ],
    ...[
      "avslutt",
      "afslut",
      "abonnent",
      "ikke (.{1,20} )?(lenger|laengere|længere|flere) ",
      "avabonner",
    ],
    ...[
      "peruut",
      "peru (.{1,20} )?(tila|uutis)",
      "tilaus",
      "tilauksen",
      "lopeta",
      "poist(u|a) (.{1,20} )?(lista|postitus)",
    ],
    ...[" en halua", " et halua", "afskra", "afþakka", "haetta askrift"],
  ],
  polish: [
    "wypis[zau]",
    "rezygn",
    "anuluj",
    "subskrypcj",
    "nie chc",
    "(usun|zakoncz) (.{1,20} )?(list|otrzym|newslet)",
  ],
  czechAndSlovak: ["odhlas", "zrusit", " odber", "nechcete", "neprajete", "nepreje", "odregistr"],
  southSlavic: [
    "odjav",
    "odpis(i|ete)",
    "otkaz",
    "одјав",
    "pretplat",
    "ne zelite",
    "narocnin",
    "отпиш",
  ],
  hungarian: [
    "leiratkoz",
    "lemond(as|ani|hat|om|ja)",
    "feliratkoz",
    "nem (.{1,20} )?(szeretne|kivan|ker)",
  ],
  romanian: [
    "dezabon",
    "renunt",
    "anula\\p{L}* (.{1,20} )?(abon|inscri)",
    "nu (.{1,20} )?(doriti|mai dor|primi)",
  ],
  baltic: [
    "loobu",
    "tuhista",
    "lopeta tellim",
    "atraksti",
    "atteikt",
    "atsisak",
    "prenumerat",
    "nebenor",
  ],
  albanianAndMaltese: ["cregjistr", " anulo", " ndalo", " abono"],
  catalanAndBasque: [" baixa ", "cancel lar", "desubscri", "harpidetza", "subscripci"],
  celtic: ["diolchrestr", "dad danysgrif", "dad tanysgrif", "diliostail"],
  turkish: [
    "abonelik",
    "aboneli[gk]",
    "listeden",
    "uyelikten",
    "uyeligi",
    "[iı]stem[ie]yor",
    "almak istem",
    "iptal",
  ],
  greek: [
    "διαγραφη",
    "απεγγραφη",
    "καταργηση",
    "διαγραφει",
    "συνδρομ",
    "δεν (.{1,20} )?(θελετε|επιθυμειτε)",
  ],
  eastSlavic: [
    ...[
      "отпис",
      "подписк",
      "відпис",
      "підписк",
      "адпіс",
      "падпіск",
      "отказ",
      "відмов",
      "рассылк",
      "розсилк",
    ],
    ...["не (.{1,20} )?(хотите|желаете|получать|бажаєте|хочете|отримувати)", "отмен", "скасув"],
  ],
  bulgarian: ["абонамент", "абонирам", "прекрат", "не (желаете|искате)"],
  caucasian: ["գրանցում", "հրաժարվել", "ապաբաժանորդագր", "გამოწერ", "გაუქმ"],
  chinese: [
    ...[
      "退[订訂]",
      "取消",
      "[订訂][阅閱]",
      "訂阅",
      "拒收",
      "(停止|不再|不想|不愿|不願|不希望|無需|无需|不要).{0,6}(接收|收到|收取|发送|發送|訂|订|邮件|郵件)",
    ],
    ...["退出", "解除", "移除", "不再接收"],
  ],
  japanese: [
    "停止",
    "解除",
    "退会",
    "解約",
    "拒否",
    "購読",
    "オプトアウト",
    "アンサブスクライブ",
    "不要な",
    "希望し(ない|ません)",
    "希望されない",
    "登録を?(削除|取)",
  ],
  korean: [
    "수신 ?(거부|을|동의|해제|차단)",
    "구독",
    "해지",
    "거부",
    "탈퇴",
    "받지 않",
    "원하지 않",
    "원치 않",
  ],
  arabicScript: [
    "اشتراك",
    "اشتراک",
    "الغاء",
    "لغو",
    "لا (ترغب|تريد)",
    "التوقف عن",
    "ايقاف",
    "انصراف",
    "سبسکرا",
    "عضویت",
    "رکنیت",
  ],
  hebrew: ["הסר", "הסיר", "ביטול", "לבטל", "מנוי", "רשימת (ה)?תפוצה", "לא (.{1,20} )?(לקבל|מעוני)"],
  indic: [
    ...["सदस्यता", "अनसब्सक्राइब", "सब्सक्रिप्शन", "रद्द", "सदस्यत्व", "সাবস্ক্রা", "সাবস্ক্রি", "সদস্যতা", "বাতিল"],
    ...["குழுவிலக", "சந்தா", "సభ్యత్వ", "చందా", "అన్‌సబ్‌స్క్రయిబ్", "ಅನ್‌ಸಬ್‌ಸ್ಕ್ರೈಬ್", "ಚಂದಾ", "അൺസബ്‌സ്ക്രൈബ്", "വരിക്കാര"],
    ...["સબ્સ્ક્રા", "સબ્સ્ક્રિ", "ਗਾਹਕੀ", "ਅਨਸਬਸਕ੍ਰਾਈਬ"],
  ],
  southEastAsian: [
    ...[
      "ยกเลิก",
      "เลิกรับ",
      "ไม่ต้องการรับ",
      "berhenti",
      "langganan",
      "nyahlanggan",
      "hu[yỷ] (dang|đang) k[yi]",
      "h[uủ]y (dang|đang)",
    ],
    ...[
      "ngung nhan",
      "huy theo doi",
      "(khong|khong con) muon nhan",
      "tu choi nhan",
      "mag ?unsub",
      "itigil",
    ],
  ],
  african: ["jiondoe", "kujiondoa", "jiondoa", "teken uit", " teken (.{1,20} )?uit ", "kanselleer"],
}

/**
 * Whether a text near a link, or a part of its address, looks as if the link ended a subscription. A
 * look that is wrong costs a link that nobody asks; a miss would end a subscription.
 */
export const isUnsubscribeSign = (text: string): boolean => ANY_SIGN.test(simplified(text))

/** Accents of references that `decodeEntities` leaves as they are. */
const ACCENTED =
  /&([a-z])(?:acute|grave|circ|uml|tilde|cedil|ring|caron|ogon|slash|macr|breve|strok|dot|dblac);/gi

/** In small letters without marks and hidden characters; what separates words is one space. */
function simplified(text: string): string {
  const words = withoutMarks(text.replace(ACCENTED, "$1")).replace(/[\p{P}\p{S}\s_]+/gu, " ")
  return ` ${words.toLowerCase()} `
}

const withoutMarks = (text: string): string =>
  text
    .normalize("NFKD")
    .replace(/[\p{M}\p{Cf}]/gu, "")
    .normalize("NFC")
    .replace(/[đĐ]/g, "d")

const ANY_SIGN = new RegExp(Object.values(SIGNS).flat().map(withoutMarks).join("|"), "u")
