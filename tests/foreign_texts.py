"""A question, the passage that answers it, and one that shares only its function words."""

PASSAGES = {
    "ar": (
        "متى افتتحت المكتبة في المدينة؟",
        "تم افتتاح مكتبة المدينة عام 1911.",
        "هو في البيت مع القط.",
    ),
    "da": ("Hvornår åbnede broen?", "Den nye bro blev åbnet i 1911.", "Hvornår kommer du hjem?"),
    "de": (
        "Wie kündige ich mein Abo?",
        "Das Abo wird im Konto gekündigt.",
        "Wie ich mein Rad putze.",
    ),
    "el": ("Πότε άνοιξε η γέφυρα;", "Η γέφυρα άνοιξε το 1911.", "Πότε είναι η γιορτή;"),
    "es": (
        "¿Cuándo se abrió el puente?",
        "El puente fue abierto en 1911.",
        "¿Cuándo se come el pan?",
    ),
    "fa": (
        "این پل در چه سالی ساخته شد؟",
        "پل بزرگ شهر سال ۱۹۱۱ ساخته شد.",
        "این گربه در خانه است.",
    ),
    "fi": (
        "Milloin se silta avattiin ja miksi?",
        "Sillat avattiin vuonna 1911.",
        "Milloin se on valmis?",
    ),
    "fr": (
        "Quand est-ce que le pont a ouvert ?",
        "L'ouverture du pont date de 1911.",
        "Quand il a plu.",
    ),
    "he": ("מתי נפתח הגשר של העיר?", "הגשר נפתח בשנת 1911.", "מתי הוא של החתול?"),
    "hi": ("पुल कब खोला गया था?", "यह पुल 1911 में खुला।", "वह कब घर गया था?"),
    "id": ("Kapan jembatan itu dibuka?", "Pembukaan jembatan pada 1911.", "Kapan dia itu datang?"),
    "it": (
        "Quando è stato aperto il ponte?",
        "L'apertura del ponte fu nel 1911.",
        "Quando è il pane?",
    ),
    "ja": ("橋はいつ開通しましたか。", "橋の開通は1911年です。", "いつ猫は来ましたか。"),
    "ko": ("다리는 언제 열렸습니까?", "이 다리를 1911년에 열었다.", "고양이는 언제 왔습니까?"),
    "nl": (
        "Wanneer is de brug geopend?",
        "De bruggen zijn in 1911 geopend.",
        "Wanneer is de kat er?",
    ),
    "no": ("Når åpnet broen?", "Den nye broa ble åpnet i 1911.", "Når kommer du hjem?"),
    "pl": ("Kiedy otwarto ten most?", "Mosty otwarto w 1911 roku.", "Kiedy ten kot jest w domu?"),
    "pt": (
        "Quando a ponte foi aberta?",
        "A abertura da ponte foi em 1911.",
        "Quando a gata foi lá?",
    ),
    "ro": ("Când a fost deschis podul?", "Podul s-a deschis în 1911.", "Când a fost el acolo?"),
    "ru": ("Когда был открыт мост?", "Открытие моста было в 1911 году.", "Когда он был там?"),
    "sv": ("När öppnades den här bron?", "Broar öppnades 1911.", "När kommer den här båten?"),
    "th": ("สะพานเปิดเมื่อไร", "สะพานนี้เปิดในปี 1911", "แมวอยู่บ้าน"),
    "tr": (
        "Köprü ne zaman açıldı?",
        "Köprünün açılışı 1911 yılında oldu.",
        "Bu kedi ne kadar iyi?",
    ),
    "uk": ("Коли відкрили міст?", "Міст відкрили 1911 року.", "Коли він був там?"),
    "vi": ("Cây cầu được mở khi nào?", "Cầu mở cửa năm 1911.", "Nó được như thế nào?"),
    "zh": ("大桥是什么时候通车的？", "大桥于1911年通车。", "这是什么时候的事？"),
}
