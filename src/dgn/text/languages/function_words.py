"""Words without content of their own, by language, and the words that ask.

The lists are short on purpose: a word belongs here only if it says nothing about what a text is
about. They have two uses. Function words weigh little, and they tell languages apart.
"""

from __future__ import annotations

FUNCTION_WORDS: dict[str, str] = {
    "de": """
    ab aber alle allem allen aller alles als also am an andere anderen anderer anderes auch auf
    aus außer bei beim bereits bevor bin bis bist da dabei dadurch dafür dagegen daher damit
    danach daran darauf daraus darf darin darüber darum das dass daß davon davor dazu dein deine
    deinem deinen deiner dem den denen denn der deren des dessen dich die dies diese diesem
    diesen dieser dieses dir doch dort du durch dürfen ein eine einem einen einer eines einige
    einigen er es etwa etwas euch euer eure für gegen gewesen gibt hab habe haben hat hatte
    hatten hier hin hinter ich ihm ihn ihnen ihr ihre ihrem ihren ihrer ihres im immer in indem
    ins ist ja jede jedem jeden jeder jedes jedoch kann kein keine keinem keinen keiner können
    könnte konnte konnten man mehr mein meine meinem meinen meiner mich mir mit muss müssen
    musste nach nicht nichts noch nun nur ob oder ohne schon sehr sei sein seine seinem seinen
    seiner seines seit selbst sich sie sind so sobald solche soll sollen sollte sondern sonst
    sowie sowohl über um und uns unser unsere unter viel viele vielen vom von vor während war
    waren wäre weil wenn werde werden wieder will wir wird wobei wurde wurden würde würden zu
    zum zur zwar zwischen
    """,
    "fr": """
    à afin ai ainsi alors après as au aucun aucune aura aussi autre autres aux avaient avait
    avant avec avez avoir avons c ça car ce ceci cela celle celles celui ces cet cette ceux
    chaque chez comme contre d dans de depuis des deux devant doit donc dont du elle elles en
    encore entre es est et étaient était étant été êtes être eu eux fait faut fut furent ici il
    ils j je jusqu jusque l la là le les leur leurs lors lui m ma mais me même mêmes mes mon n
    ne ni non nos notre nous on ont ou où par parce pas pendant peut peuvent plus plusieurs pour
    puis qu que s sa sans se sera seront ses si soit son sont sous suis sur t ta te tes
    ton tous tout toute toutes très tu un une va vers vos votre vous y
    """,
    "es": """
    a al algo algún alguna algunas algunos ambos ante antes aquel aquella aquellos aun aún
    aunque así bajo bien cada casi como con contra cuyo cuya da de debe del desde después dos
    durante e el él ella ellas ellos en entre era eran es esa esas ese eso esos esta está estaba
    estaban estado están estar estas este esto estos fue fueron ha había habían haber han hasta
    hay incluso la las le les lo los más me mediante mi mí mientras mis misma mismo mucho muchos
    muy nada ni no nos nosotros nuestra nuestro o os otra otras otro otros para pero por porque
    pueda puede pueden pues que se sea según ser si sí sido siendo sin sino sobre solo sólo son
    soy su sus también tan tanto te tener tenía tiene tienen ti toda todas todavía todo todos
    tras tu tus u un una unas uno unos usted ustedes y ya yo
    """,
    "pt": """
    a à ainda além algum alguma algumas alguns ante antes ao aos apenas após aquela aquele
    aquilo as às assim até cada com como contra cujo cuja da das de dela dele deles depois desde
    dessa desse desta deste deve disso do dos durante e é ela elas ele eles em entre era eram
    essa essas esse esses esta está estão estar estas estava este estes eu foi foram for há isso
    isto já la lhe lhes lo mais mas me mediante meio mesma mesmo meu meus minha muito muitos na
    não nas nem nenhum no nos nós nossa nosso num numa o os ou outra outras outro outros para
    pela pelas pelo pelos pode podem pois por porque pra quase que se seja sem sendo ser será
    seu seus si sido sob sobre sua suas só também tão tem têm tendo ter teve tinha toda todas
    todo todos tu um uma umas uns vai você vocês vos
    """,
    "it": """
    a abbia ad agli ai al alcuni alcune alla alle allo altra altre altri altro anche ancora
    avere aveva avevano c che ci ciò ciascuno coi col come con contro cui d da dagli dai dal
    dalla dalle dallo degli dei del dell della delle dello deve di dopo due durante e è ed era
    erano essa esse essere essi esso fa fin fino fra fu furono già gli ha hai hanno ho i il in
    inoltre io l la le lei li lo loro lui m ma me mentre mi mia mie miei mio molti molto ne né
    negli nei nel nella nelle nello noi non nostra nostro o od ogni oltre oppure per perché però
    più poi prima può possono pure qualche quella quelle quelli quello questa queste questi
    questo s se sei sempre senza si sia siamo siano sino sono sopra sotto stata state stati
    stato su sua sue sugli sui sul sulla sulle suo suoi tra tu tua tuo tutta tutte tutti tutto
    un una uno v va verso vi voi
    """,
    "nl": """
    aan aangezien al alle alles als altijd andere anders ben bent bij binnen boven daar daarin
    daarna daarom daarvan dan dat de deze die dit doch doen door dus echter een eens en er ervan
    even geen geweest had hadden haar heb hebben hebt heeft hem hen het hier hij hun ik in is ja
    je jij jou jouw jullie kan kon konden kunnen maar mag me meer men met mij mijn moest moet
    moeten na naar niet niets nog nu of om omdat onder ons onze ook op over reeds samen sinds
    snel sommige te tegen terwijl toch toen tot tussen u uit uw vaak van vanaf vanuit veel via
    volgens voor vooral want waren was we wel werd werden wie wij worden wordt zal ze zeer zelf
    zich zij zijn zo zoals zonder zou zouden zowel zullen
    """,
    "da": """
    af aldrig alle allerede alt altid anden andet andre at både blev blevet blive bliver da de
    dem den denne dens der deres derfor det dets dette dig din dine disse dit dog du efter eller
    en end endnu er et få får flere for før fordi fra gennem gik gjorde god godt gør ham han
    hans har havde have hende hendes her hos hun i ifølge igen ikke ind ingen intet ja jeg jer
    kan kom kun kunne lidt man mange med meget mellem men mens mere mest mig min mindre mine mit
    mod må ned nej noget nogen nogle nok nu når og også om omkring op os over på samme samt selv
    sig sin sine sit siden skal skulle som stadig så ti til uden ud under var ved vi vil ville
    vor være været
    """,
    "no": """
    alle alltid allerede andre at av bare ble blei blir blitt bli både da de deg dei dem den
    denne der dere deres dermed derfor det dette di din disse ditt du dykk eg ei ein eit eller
    en enn er et etter flere for fordi fra fram før få får gjennom gjør gjorde ha hadde ham han
    hans har henne hennes her ho hos hun i ifølge igjen ikke ikkje ingen inn innen ja jeg kan
    kom kun kunne man mange med meg meget mellom men mens mer mest min mine mitt mot må mye ned
    nei noe noen nokon nå og også om opp oss over på samme samt seg selv si siden sin sine sitt
    skal skulle slik som så til uten ut under var ved vi vil ville vår være vært å
    """,
    "sv": """
    all alla allt alltid andra att av bara ble bli blir blev blivit bland både då de dem den
    denna deras dess dessa det detta dig din dina dit ditt du där därför efter eller en enligt
    er era ett fick finns flera från för före få får genom gör gjorde ha hade han hans har
    hennes henne hon honom här i icke ihop in inga ingen inget innan inom inte ja jag kan kom
    kunde man med medan mellan men mer mest mig min mina mitt mot mycket må måste många ned nej
    ni något någon några nu och också om oss på redan samma samt sedan sig sin sina sitt ska
    skall skulle som så sådan säger till under upp ur ut utan vara varit vi vid vill är än ännu
    även över
    """,
    "fi": """
    ei eivät ehkä eli emme en enemmän ennen että häneen häneltä hän hänen häntä he heidän heitä
    hyvin itse ja jo jonka jos jossa joten jotka jotta joka jonkun jälkeen kaikki kaikkien
    kanssa kautta keskellä koska kuin kuitenkin kun kuten lisäksi luona lähes me meidän minä
    minun minut mukaan mukana mutta muun muut myös ne niiden niille niin niitä noin nuo nyt näin
    näitä nämä näiden ole oli olen olemme olet olisi olivat olla olleet ollut on onko ovat
    paljon se sekä sen siellä siihen siinä siis siitä sillä silti sinun sinä sitten sitä tai te
    teidän tämä tämän tällä tässä tästä tätä vaan vaikka vain vasta vielä voi voidaan voivat
    välillä yhä
    """,
    "hu": """
    a abban ahhoz ahogy aki akik akkor alá alatt által általában amely amelyek amelyet amelynek
    ami amikor amit annak arra arról át az azért azok azon azonban azt aztán azzal be belül
    benne csak de e ebben egy egyéb egyes egyik el elé előtt első én ennek ennél ér erre ez ezek
    ezen ezért ezt ezzel fel felé fog ha hanem három hogy illetve ilyen is itt jó két kell ki
    kívül közben között közül le legyen lehet lenne lesz lett ma maga már más meg még mellett
    mert mind minden miután mivel most mint nagy nagyon ne nekem neki nélkül nem nincs olyan ott
    össze ő ők őket pedig rá s saját sem ser sok sokkal során szerint szét számára tehát teljes
    tovább több ugyan úgy után új vagy vagyok való valamint van vannak vele vissza viszont volt
    voltak volna
    """,
    "ro": """
    a abia acea aceasta această aceea acei aceia acel acela acele acelea acest acesta aceste
    acestea acestei acestor acestui acești aceștia acolo acum ai aici al ale alt alta alte
    altele altul am ar are as asemenea asta astfel asupra ați au avea avut aș ca către cea cei
    cel cele celor chiar ci cu da dacă dar datorită de deci decât deja deoarece deși despre din
    dintr dintre doar după e ea ei el ele era erau este eu face fără fi fie fiecare fiind fost
    iar îi îl în încă înainte între într intre îmi își îți la le li lor lui mai mea mei mele meu
    mi mult multe mulți nici nimic niște noastră noi nostru nu o or ori pe pentru peste poate
    pot prea prin printre sa să sale sau său săi se si și sub sunt sus ta te tot toate toți
    totuși tu un una unei unele unii unor unui va vă voastră voi vor
    """,
    "pl": """
    a aby ale albo ani az aż bardziej bardzo bez bo by być był była było były będą będzie bowiem
    cały ci czy czyli dla do gdy gdyż go i ich im inne inny iż ja jak jako jednak jednym jego
    jej jemu jest jestem jeśli jeszcze jeżeli już każdy ku lub ma mają mam mi między mimo mną
    mnie może można moja mój mu my na nad nam nami nas nasz natomiast nawet nic nich nie niego
    niej nim nimi niż no o od on ona one oni ono oprócz oraz po pod podczas ponieważ poza przed
    przede przez przy są sam się sobie swój swoje swoich ta tak także tam te tego tej ten też to
    tobą tu tutaj twój ty tych tylko tym w we wiele według więc wszystkie wszystko wśród z za ze
    zł że został została zostały żeby
    """,
    "cs": """
    a aby aj ale ani ano asi až bez bude budou by byl byla bylo byly být což či další do ho i
    ich já jak jako je jeho jej její jejich jen ještě ji jiné již jsem jsme jsou jste k každý
    když ke která které který kteří ku má mají máte mezi mi mít mně mnou můj může my na nad nám
    námi nás náš ne nebo nebyl nebyla není než nic nich ním o od on ona oni ono pak po pod podle
    pokud pouze právě pro proto protože první před přes při s se si své svůj svých svým ta tak
    také takže tam te tedy ten tento těch této tím tímto to tohle toho tom tomto tomu tu tuto ty
    tyto u už v vám vás váš ve více však všechny vy z za zde ze že
    """,
    "id": """
    ada adalah agar akan akhirnya aku anda antara apabila atas atau bagi bahkan bahwa banyak
    baru beberapa begitu belum berbagai berupa bila bisa boleh bukan dalam dan dapat dari
    daripada dengan di dia diri dua guna hal hampir hanya harus hingga ia ialah ini itu jadi
    jika juga kalau kami kamu karena ke kecuali kemudian kepada ketika kita lagi lain lalu lebih
    maka masih melalui memang memiliki menjadi merupakan mereka meskipun mungkin namun nya oleh
    pada padahal para per pernah pula pun saat saja salah saling sambil sampai sangat satu saya
    sebab sebagai sebelum sebuah secara sedang sedangkan sehingga sejak sekitar selain selama
    seluruh semua seorang seperti sering serta sesudah setelah setiap suatu sudah supaya tapi
    telah tentang terhadap terjadi terlalu tersebut tetapi tiap tidak untuk walaupun yaitu yakni
    yang
    """,
    "vi": """
    bị bởi cả các cái càng cần chỉ cho chưa chứ có cũng của cùng cứ đã đang để đến đều điều do
    được giữa hay hầu hoặc hơn họ hết khi không là lại lên lúc mà mặc mình mỗi một mọi này nên
    nếu ngay người nhưng như những nữa nó nơi ở phải qua ra rằng rất rồi sau sẽ sự tại tất thành
    theo thế thì thêm thuộc tới trên trong trước từ tuy từng và vẫn vào về vì việc với vừa
    """,
    "tr": """
    acaba ama ancak artık aslında ayrıca az bana bazı belki ben beni benim bile bir biraz birçok
    biri birkaç biz bize bizim böyle bu buna bunda bundan bunlar bunu bunun burada çok çünkü da
    daha dahi de değil diğer diye dolayı eden eder edilen en etmek etti fakat gibi göre hala
    hatta hem hep hepsi her herhangi için ile ilgili ise itibaren iyi kadar karşı kendi kendine
    kendisi ki kimse lakin mı mi mu mü o olan olarak oldu olduğu olduğunu olmak olmuş olsa olur
    on ona ondan onlar onların onu onun orada oysa öyle önce önceki pek rağmen sadece sanki sen
    senin siz size sizin son sonra şey şimdi şöyle şu tarafından tüm üzere var ve veya ya yani
    yer yine yok zaten
    """,
    "ru": """
    а без бы был была были было быть в вам вами вас ваш ваша вашего ваше ваши весь во вот все
    всего всей всем всех вы да даже для до другие других его ее её ей ему если есть еще ещё ею
    же за здесь и из или им ими их к каждый ко которая которого которое которой которую которые
    который котором которых ли либо лишь между меня мне много может можно мой моя мы на над надо
    нам нами нас наш наша не него нее неё ней нельзя нет ни ним ними них но ну о об обо однако
    он она они оно от очень перед по под после при про с сам сама само своего своей своем свои
    своих свою себе себя со собой так также такая такие такой там тебе тебя тем то тобой того
    тоже той только том ту ты у уже хотя через чтоб чтобы эта эти этим этих это этого этой этом
    этому этот эту я является являются
    """,
    "uk": """
    а або адже але б без би був була були було бути в вам вами вас ваш весь вже ви від вони вона
    воно все всі всього всіх він для до добре ж же з за зі і із інших інші їй їм їх її його й
    йому ми між мене мені може можна мій моя на над нам нами нас наш не нього неї ній ні ним них
    ну о об однак перед під по поки потім при про проти та так також такий там ти тим то тобі
    того тоді тому тут у хоча це цей цим ця цього цьому ці через чи що щоб я яка яке який які
    яку якщо є
    """,
    "bg": """
    а аз ако ала без беше би бил била били било бъде бъдат в вас вече ви во все всеки всички
    всичко във го да дали до докато други е един една едно за заедно защото и из или им има имат
    й като която които който което към ли май между ме ми мен много може му на над най нас не
    него нея ни нито но някои няма о обаче около от освен по под пред през при с са само се си
    сме след според със също сред така такава такива такъв там тази тези ти то това тогава този
    той тук тя тях у ще щом я
    """,
    "el": """
    α αλλά αν ανάμεσα αντί από απ αυτά αυτές αυτή αυτήν αυτής αυτό αυτοί αυτόν αυτός αυτού
    αυτούς αυτών αφού για δε δεν διότι εάν εγώ εδώ εκεί είμαι είναι είχαν είχε έχει έχουν ένα
    έναν ένας ενός ενώ επί επίσης επειδή εσύ ή η ήδη ήμουν ήταν θα ίδια ίδιο ίδιος ίσως κάθε και
    κάποια κάποιος κατά κάτι κι λόγω μα μας με μέσα μέσω μετά μεταξύ μέχρι μη μην μία μια μιας
    μόνο μου να ο οι όλα όλες όλη όλο όλοι όλων όμως όπου όπως όσο ότι ούτε πάνω παρά περί πιο
    πολλά πολλές πολλοί πολύ πριν προς που σαν σας σε σου στα στη στην στης στις στο στον στους
    συν τα τη την της τις το τον τόσο τότε του τους των υπό ύστερα χωρίς ως ώστε
    """,
    "ar": """
    ابي اثر اجل احد اذ اذا الا التي الذي الذين اللذان اللاتي اللتان الى اما ان انه انها او ايضا
    بان بد بعد بعض بل به بها بهذا بين بينما تحت تكون تلك تم ثم جدا جميع حتى حول حيث خلال دون ذلك
    رغم سوف سوى ضد ضمن عبر عدة عدم عليه عليها على عن عند عندما عنه عنها غير فان فقد فقط في فيه
    فيها قبل قد كان كانت كانوا كذلك كل كلا كما لا لان لدى لقد لكن لم لن له لها لهم لو ليس ليست
    مثل مع معه معها منذ منه منها نحو نفس هذا هذه هم هنا هناك هو هي و وان وفي وقد وكان وكانت ولا
    ولم ومع ومن وهو وهي يتم يكون يمكن
    """,
    "fa": """
    آن آنان آنها آنجا از است اش اگر الا اما ام امّا او ای این اینجا اینکه با باز باشد باشند باید
    بر برای برخی بسیار بعد بعضی بلکه بود بودن بودند بوده به بی بین بیش پس پیش تا تر تمام تنها تو
    جز چنان چنین چون حتی خود خواهد خواهند در درباره دیگر را روی زیر زیرا سپس شان شد شدن شدند شده
    شما شود شوند طی علیه عنوان غیر فقط قبل کرد کردن کردند کرده کند کنند که گاه گردید گفت گفته ما
    مانند مثل مگر من مورد می میان میتوان میتواند میشد میشود میشوند میکرد میکند میکنند ندارد نبود
    نسبت نمی نه نیز نیست ها های هر هم همان همه همچنین همین هنگام هنوز هیچ و ولی وی وقتی یا یک
    یکی
    """,
    "hi": """
    अत अथवा अन्य अपना अपनी अपने अब अभी आदि आप इत्यादि इन इनका इनकी इनके इन्हें इस इसका इसकी इसके इसमें
    इसलिए इसी इसे उन उनका उनकी उनके उनको उन्हें उन्होंने उस उसका उसकी उसके उसने उसी उसे एक एवं ऐसे ऐसी ऐसा और
    कई कर करता करते करना करने करें करके कहते कहा का की कि किए किया किसी कुछ के को गई गए गया जब जहाँ जा
    जाता जाती जाते जाना जाने जिन जिस जिसका जिसके जिसमें जिसे जैसा जैसे जो तक तब तरह तो था थी थीं थे दिया दो
    दोनों द्वारा न नहीं ने पर परंतु पहले पास फिर बनी बहुत बाद बारे भी मगर मुझे में मैं यदि यह यहाँ यहां या ये रहा
    रही रहे लिए लेकिन व वह वहाँ वहां वाला वाले वाली वे वो सकता सकती सकते सब सभी साथ से हम हमारे ही हुआ हुई
    हुए हूँ है हैं हो होता होती होते होना होने
    """,
    "he": """
    אבל או אולי אותה אותו אותם אז אחר אחרי אך אל אלא אלה אם אנחנו אני אף את אתה אתם בגלל בו בה
    בין בלי במקום בעוד בתוך גם דרך הוא היא היה היו הייתה הם הן הנה הרבה זאת זה זו זהו יותר יש
    כאן כאשר כבר כדי כי כך כל כמו כן כפי לא לאחר לו לה להיות להם לכן לפי לפני לקראת מאוד מאשר
    מול מן מעל מפני נגד עבור עד עוד על עם עצמו פי רק של שבו שבה שהוא שהיא שוב שם תוך תחת
    """,
    "ko": """
    가 같은 같이 것 것은 것을 것이 그 그것 그녀 그는 그들 그러나 그런 그리고 그의 까지 나 나는
    너 는 다른 당시 대한 더 데 도 동안 되는 된 될 두 등 등의 때 때문에 또 또는 또한 로 를 만
    많은 매우 및 바로 부터 사이 수 아니라 안 않은 않는 약 에 에게 에서 여러 와 우리 위한 위해
    으로 은 을 의 이 이는 이러한 이런 이를 이후 있는 있다 있었다 있으며 자신의 저 전 제 즉 지 채
    하고 하는 하며 하여 하지만 한 할 함께 했다
    """,
    "zh": """
    的 了 是 在 和 与 及 或 也 都 就 而 但 并 且 被 把 将 对 于 以 为 从 到 由 向 这 那 其 之 此
    该 它 他 她 我 你 们 有 不 没 着 过 地 得 所 等 很 更 最 又 还 只 已 会 能 可 要 让 使 因 则
    若 如 呢 吧 啊 个 種 後 與 為 這 對 於 從 將 會 個 們 沒 還 讓 過 無
    """,
}
"""The function words of each language, without those that ask; English has its own in `words`."""

QUESTION_WORDS: dict[str, str] = {
    "de": """
    wann warum was welche welchem welchen welcher welches wem wen wer weshalb weswegen wessen
    wie wieso wieviel wieviele wo wodurch wofür woher wohin womit woran woraus worin worüber
    wovon wozu
    """,
    "fr": """
    combien comment pourquoi lequel laquelle lesquels quand quel quelle quelles quels qui quoi
    """,
    "es": """
    adónde cómo cuál cuáles cuando cuándo cuánta cuántas cuánto cuántos cuanto donde dónde qué
    quien quién quienes quiénes
    """,
    "pt": "aonde onde qual quais quando quanta quantas quanto quantos quê quem",
    "it": "chi cosa dove qual quale quali quando quanta quante quanti quanto",
    "nl": "hoe hoeveel waar waarin waarom waarvan wanneer wat welk welke wiens",
    "da": "hvad hvem hvilke hvilken hvilket hvis hvor hvordan hvorfor hvornår",
    "no": """
    hva hvem hvilke hvilken hvilket hvis hvor hvordan hvorfor når kva kven korleis kvifor kor
    """,
    "sv": "hur när vad var varför vart vem vems vilka vilken vilket",
    "fi": """
    ketkä kenen kenet keitä kuinka kuka ketä mihin mikä miksi millainen milloin minkä minne
    missä mistä mitä mitkä montako paljonko
    """,
    "hu": """
    hány hogyan hol honnan hová hova kik kinek kit melyek melyik mennyi meddig mi mikor milyen
    miért minek mit
    """,
    "ro": "câte câți care cât câtă ce când cine cui cum unde",
    "pl": """
    co czyj czego czemu dlaczego gdzie ile jaka jaki jakie jakich jakim kiedy kim kogo komu kto
    która które którego której którym który skąd
    """,
    "cs": "co čeho čím jaká jaké jaký kde kdo kdy koho komu kolik kam proč",
    "id": """
    apa apakah bagaimana bagaimanakah berapa berapakah dimana kapan kapankah kenapa mana manakah
    mengapa siapa siapakah
    """,
    "vi": "ai bao đâu gì mấy nào sao nhiêu",
    "tr": """
    hangi hangisi kaç kim kime kimi kimin kimler nasıl ne neden nedir neler nelerdir nere nerede
    nereden nereye neyi niçin niye
    """,
    "ru": """
    где зачем как какая какие каким каких какова каково каковы какого какое какой каком какую
    когда кого кому кто куда насколько откуда отчего почему сколько чего чей чему чем что чьи
    чья
    """,
    "uk": """
    де звідки коли кого кому куди навіщо скільки хто чий чого чому як яким яких якого якої
    """,
    "bg": "защо какво каква какви как какъв кога кого коя кои кой колко къде откъде що",
    "el": """
    γιατί ποια ποιά ποιας ποιες ποιο ποιό ποιοι ποιον ποιος ποιός ποιου ποιους ποιων πόσα πόσες
    πόση πόσο πόσοι πόσος πότε πού πώς τι τί
    """,
    "ar": "اين اينما كم كيف لماذا لمن ماذا متى ماهي ماهو من ما هل بماذا بكم لما اي",
    "fa": "آیا چرا چطور چقدر چگونه چند چندم چه چی چیست چیزی کجا کجاست کدام کدامند کی کیست",
    "hi": """
    कब कहाँ कहां किन किनके किसका किसके किसकी किसने किसे कितना कितनी कितने कैसा कैसे कैसी कौन कौनसा कौनसी
    क्या क्यों
    """,
    "he": "איזה איזו אילו איך איפה היכן כיצד כמה לאן למה מדוע מה מהו מהי מהם מי מתי",
    "ko": """
    누가 누구 누구의 몇 무슨 무엇 무엇을 무엇인가 어느 어디 어디에서 어디서 어떤 어떻게 언제
    얼마나 왜
    """,
    "zh": "谁 哪 什 么 何 几 怎 吗 嘛 甚 誰 麼 幾 嗎",
    "ja": "何 誰",
}
"""The words that ask; a passage that contains them does not answer."""
