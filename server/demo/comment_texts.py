"""What the demo's members say about products: sentences of our own, by language and by how content they are.

Each language has openings for good, mixed and poor ratings, details that follow any of them, and a title for each mood.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Voice:
    """One language's sentences. `gap` stands between two of them."""

    good: tuple[str, ...]
    mixed: tuple[str, ...]
    poor: tuple[str, ...]
    details: tuple[str, ...]
    titles: tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]
    gap: str = " "


VOICES = {
    "en": Voice(
        good=(
            "Better than the pictures promised.",
            "I wore it to the last three shows and people kept asking where it came from.",
            "Solid work, and it survived my nephew.",
            "Bought one for myself, then two more as presents.",
            "Exactly what a fan wants on the shelf.",
            "Worth every cent, which I rarely say about merchandise.",
        ),
        mixed=(
            "It does its job, no more and no less.",
            "Nice idea, average finish.",
            "I like it, though it is smaller than I imagined.",
            "Good enough for the price, but I had hoped for a little more.",
            "My brother loves his; mine has a crooked seam.",
        ),
        poor=(
            "The print came off in the second week.",
            "It arrived with a dent and a shrug from the courier.",
            "Looks fine from the back row, and only from there.",
            "I sent it back and kept the sticker.",
        ),
        details=(
            "Delivery took four days.",
            "The colours are a bit darker than on the screen.",
            "It came wrapped in paper, no plastic at all.",
            "Go one size up.",
            "The box alone is worth keeping.",
            "Customer service answered within the hour.",
            "I have had mine since the spring event.",
            "The stitching on the left side could be tighter.",
            "It fits in a backpack without folding.",
        ),
        titles=(
            ("Main event material", "A keeper", "Five stars, no contest"),
            ("Mid-card", "Fine, not great", "A draw"),
            ("Tapped out early", "Not again", "Counted out"),
        ),
    ),
    "de": Voice(
        good=(
            "Macht in echt noch mehr her als auf den Bildern.",
            "Sauber verarbeitet, da wackelt nichts.",
            "Seit drei Veranstaltungen im Einsatz und immer noch wie neu.",
            "Genau das Richtige für die Wand im Arbeitszimmer.",
            "Mein Sohn legt es nicht mehr aus der Hand.",
        ),
        mixed=(
            "Ordentlich, aber nichts Besonderes.",
            "Schöne Idee, die Ausführung ist so lala.",
            "Für das Geld in Ordnung.",
            "Etwas kleiner als gedacht, sonst ganz hübsch.",
        ),
        poor=(
            "Nach zwei Wäschen war die Farbe weg.",
            "Kam zerkratzt an, schade.",
            "Riecht auch nach einer Woche noch nach Lager.",
            "Ich habe es zurückgeschickt.",
        ),
        details=(
            "Die Lieferung war nach drei Tagen da.",
            "Die Farben sind etwas dunkler als am Bildschirm.",
            "Verpackt war alles in Papier, ganz ohne Plastik.",
            "Lieber eine Nummer größer nehmen.",
            "Die Naht an der linken Seite könnte fester sein.",
            "Auf meine Frage kam noch am selben Tag eine Antwort.",
            "Passt gefaltet in jede Tasche.",
        ),
        titles=(
            ("Volltreffer", "Gehört in jede Sammlung", "Klare Empfehlung"),
            ("Geht so", "Unentschieden", "Durchschnitt"),
            ("Leider nein", "Aufgegeben", "Nicht noch einmal"),
        ),
    ),
    "fr": Voice(
        good=(
            "Encore plus beau en vrai que sur les photos.",
            "Très bien fini, on sent le soin apporté aux détails.",
            "Je l'ai porté à la dernière soirée, tout le monde m'a demandé d'où il venait.",
            "Un cadeau qui a fait son effet.",
            "Rien à redire, je recommande.",
        ),
        mixed=(
            "Correct, sans plus.",
            "Bonne idée, finition moyenne.",
            "Un peu plus petit que je ne le pensais.",
            "Pour ce prix, c'est acceptable.",
        ),
        poor=(
            "L'impression est partie au deuxième lavage.",
            "Arrivé abîmé, dommage.",
            "De loin, ça va ; de près, beaucoup moins.",
            "Je l'ai renvoyé.",
        ),
        details=(
            "Livré en quatre jours.",
            "Les couleurs sont un peu plus sombres qu'à l'écran.",
            "Emballage en papier, sans plastique, bravo.",
            "Prenez une taille au-dessus.",
            "Le service client a répondu dans l'heure.",
            "La couture de gauche mériterait mieux.",
            "Il tient plié dans un sac à dos.",
        ),
        titles=(
            ("Une belle pièce", "À garder", "Victoire nette"),
            ("Passable", "Match nul", "Ni chaud ni froid"),
            ("Déçu", "Plus jamais", "Abandon"),
        ),
    ),
    "es": Voice(
        good=(
            "En persona gana mucho respecto a las fotos.",
            "Bien hecho y con buen gusto, se nota el cuidado.",
            "Lo llevé al último evento y no paraban de preguntarme por él.",
            "Compré uno y al mes volví por otro.",
            "Justo lo que buscaba para la estantería.",
        ),
        mixed=(
            "Cumple, sin más.",
            "La idea es buena; el acabado, regular.",
            "Es algo más pequeño de lo que esperaba.",
            "Por lo que cuesta, está bien.",
        ),
        poor=(
            "El dibujo se borró a la segunda lavada.",
            "Llegó golpeado, una pena.",
            "De lejos pasa; de cerca, no tanto.",
            "Lo devolví a los dos días.",
        ),
        details=(
            "Tardó cuatro días en llegar.",
            "Los colores son un poco más oscuros que en la pantalla.",
            "Venía envuelto en papel, nada de plástico.",
            "Mejor pedir una talla más.",
            "La costura izquierda podría ser más firme.",
            "Me contestaron en menos de una hora.",
            "Cabe doblado en cualquier mochila.",
        ),
        titles=(
            ("De primera", "Se queda conmigo", "Ganador claro"),
            ("Ni fu ni fa", "Empate", "Normalito"),
            ("No repito", "Una pena", "Por la lona"),
        ),
    ),
    "it": Voice(
        good=(
            "Dal vivo è ancora più bello che in foto.",
            "Rifinito con cura, non c'è un filo fuori posto.",
            "L'ho messo all'ultima serata e tutti volevano sapere dove l'avessi preso.",
            "Un regalo riuscitissimo.",
            "Vale quello che costa, e non capita spesso.",
        ),
        mixed=(
            "Fa il suo dovere, niente di più.",
            "Bella l'idea, un po' meno la fattura.",
            "Più piccolo di come me lo aspettavo.",
            "Per il prezzo ci può stare.",
        ),
        poor=(
            "La stampa è sparita al secondo lavaggio.",
            "È arrivato ammaccato, peccato.",
            "Da lontano va bene, da vicino molto meno.",
            "L'ho rispedito indietro.",
        ),
        details=(
            "Consegnato in quattro giorni.",
            "I colori sono un po' più scuri che sullo schermo.",
            "Confezione di carta, senza plastica.",
            "Meglio prendere una taglia in più.",
            "La cucitura a sinistra poteva essere più stretta.",
            "Mi hanno risposto entro un'ora.",
            "Piegato sta in qualsiasi zaino.",
        ),
        titles=(
            ("Da campioni", "Promosso", "Non lo mollo più"),
            ("Così così", "Pareggio", "Nella media"),
            ("Bocciato", "Mai più", "Al tappeto"),
        ),
    ),
    "pt-BR": Voice(
        good=(
            "Pessoalmente é ainda mais bonito do que nas fotos.",
            "Acabamento caprichado, dá gosto de ver.",
            "Usei no último evento e não paravam de perguntar onde comprei.",
            "Comprei para mim e acabei levando outro de presente.",
            "Era o que faltava na minha coleção.",
        ),
        mixed=(
            "Cumpre o que promete, nada além disso.",
            "A ideia é boa, o acabamento nem tanto.",
            "Veio um pouco menor do que eu imaginava.",
            "Pelo preço, está de bom tamanho.",
        ),
        poor=(
            "A estampa saiu na segunda lavagem.",
            "Chegou amassado, uma pena.",
            "De longe engana; de perto, não.",
            "Devolvi na mesma semana.",
        ),
        details=(
            "A entrega levou quatro dias.",
            "As cores são um pouco mais escuras do que na tela.",
            "Veio embalado em papel, sem plástico.",
            "Vale pedir um número maior.",
            "A costura da esquerda podia ser mais firme.",
            "O atendimento respondeu em menos de uma hora.",
            "Dobrado, cabe em qualquer mochila.",
        ),
        titles=(
            ("Nota dez", "Campeão", "Não largo mais"),
            ("Mais ou menos", "Empate", "Na média"),
            ("Decepção", "Não compro de novo", "Jogou a toalha"),
        ),
    ),
    "ja": Voice(
        good=(
            "写真よりも実物のほうがずっといいです。",
            "作りが丁寧で、細かいところまできれいでした。",
            "前回の大会につけて行ったら、何人にも声をかけられました。",
            "自分用に買って、結局プレゼント用にもう一つ頼みました。",
            "棚に飾るのにちょうどいい大きさです。",
        ),
        mixed=(
            "悪くはないけれど、特別でもありません。",
            "アイデアは好きですが、仕上げは普通です。",
            "思っていたより少し小さめでした。",
            "値段を考えれば十分だと思います。",
        ),
        poor=(
            "二回洗っただけでプリントが落ちました。",
            "届いたときにはもう傷がついていました。",
            "遠くから見るぶんには問題ありません。",
            "残念ですが返品しました。",
        ),
        details=(
            "四日で届きました。",
            "色は画面より少し濃いめです。",
            "紙だけの包装で好感が持てます。",
            "一つ上のサイズをおすすめします。",
            "問い合わせには一時間で返事が来ました。",
            "左側の縫い目がもう少ししっかりしていれば。",
            "たためばリュックにも入ります。",
        ),
        titles=(
            ("買ってよかった", "文句なしの一品", "完全勝利"),
            ("まあまあ", "引き分け", "普通です"),
            ("期待はずれ", "もう買いません", "ギブアップ"),
        ),
        gap="",
    ),
    "zh-Hans": Voice(
        good=(
            "实物比照片还好看。",
            "做工扎实,细节也讲究。",
            "上次看比赛戴着去,好几个人问我在哪里买的。",
            "先给自己买了一个,后来又买了两个送人。",
            "放在书架上正合适。",
        ),
        mixed=(
            "中规中矩,没有惊喜。",
            "创意不错,做工一般。",
            "比想象中小一点。",
            "这个价格可以接受。",
        ),
        poor=(
            "洗了两次图案就掉了。",
            "收到的时候已经有划痕。",
            "远看还行,近看就算了。",
            "已经退货了。",
        ),
        details=(
            "四天就送到了。",
            "颜色比屏幕上深一点。",
            "包装全是纸,没有塑料。",
            "建议买大一号。",
            "客服一个小时内就回复了。",
            "左边的线脚可以再紧一点。",
            "折起来能放进背包。",
        ),
        titles=(
            ("物超所值", "值得收藏", "完胜"),
            ("还可以", "平局", "一般般"),
            ("失望", "不会再买", "认输"),
        ),
        gap="",
    ),
}
