"""input_0 -> 4195

Imported from open_nsfw.onnx (opset 17), sha256
fb29e60f4b224afa2a4a16d5f3e5993375efe15f88b4c591311eb3a6e5b251d8;
weights in open_nsfw.safetensors.
"""

from burnish import nn, ops


class Model(nn.Module):
    def __init__(self):
        self.conv = nn.Conv2d(3, 64, 7, stride=2, bias=False)
        self.bias = nn.Param(nn.init.normal(0.02), (1, 1, 1, 64))
        self.mean = nn.Param(nn.init.normal(0.02), (1, 1, 1, 64))
        self.scale = nn.Param(nn.init.normal(0.02), (1, 1, 1, 64))
        self.bias2 = nn.Param(nn.init.normal(0.02), (1, 1, 1, 64))
        self.conv2 = nn.Conv2d(64, 32, 1, bias=False)
        self.bias3 = nn.Param(nn.init.normal(0.02), (1, 1, 1, 32))
        self.mean2 = nn.Param(nn.init.normal(0.02), (1, 1, 1, 32))
        self.scale2 = nn.Param(nn.init.normal(0.02), (1, 1, 1, 32))
        self.bias4 = nn.Param(nn.init.normal(0.02), (1, 1, 1, 32))
        self.conv3 = nn.Conv2d(32, 32, 3, padding=1, bias=False)
        self.bias5 = nn.Param(nn.init.normal(0.02), (1, 1, 1, 32))
        self.mean3 = nn.Param(nn.init.normal(0.02), (1, 1, 1, 32))
        self.scale3 = nn.Param(nn.init.normal(0.02), (1, 1, 1, 32))
        self.bias6 = nn.Param(nn.init.normal(0.02), (1, 1, 1, 32))
        self.conv4 = nn.Conv2d(64, 128, 1, bias=False)
        self.bias7 = nn.Param(nn.init.normal(0.02), (1, 1, 1, 128))
        self.conv5 = nn.Conv2d(32, 128, 1, bias=False)
        self.bias8 = nn.Param(nn.init.normal(0.02), (1, 1, 1, 128))
        self.mean4 = nn.Param(nn.init.normal(0.02), (1, 1, 1, 128))
        self.scale4 = nn.Param(nn.init.normal(0.02), (1, 1, 1, 128))
        self.bias9 = nn.Param(nn.init.normal(0.02), (1, 1, 1, 128))
        self.mean5 = nn.Param(nn.init.normal(0.02), (1, 1, 1, 128))
        self.scale5 = nn.Param(nn.init.normal(0.02), (1, 1, 1, 128))
        self.conv6 = nn.Conv2d(128, 32, 1, bias=False)
        self.bias10 = nn.Param(nn.init.normal(0.02), (1, 1, 1, 32))
        self.mean6 = nn.Param(nn.init.normal(0.02), (1, 1, 1, 32))
        self.scale6 = nn.Param(nn.init.normal(0.02), (1, 1, 1, 32))
        self.bias11 = nn.Param(nn.init.normal(0.02), (1, 1, 1, 32))
        self.conv7 = nn.Conv2d(32, 32, 3, padding=1, bias=False)
        self.bias12 = nn.Param(nn.init.normal(0.02), (1, 1, 1, 32))
        self.mean7 = nn.Param(nn.init.normal(0.02), (1, 1, 1, 32))
        self.scale7 = nn.Param(nn.init.normal(0.02), (1, 1, 1, 32))
        self.bias13 = nn.Param(nn.init.normal(0.02), (1, 1, 1, 32))
        self.conv8 = nn.Conv2d(32, 128, 1, bias=False)
        self.bias14 = nn.Param(nn.init.normal(0.02), (1, 1, 1, 128))
        self.mean8 = nn.Param(nn.init.normal(0.02), (1, 1, 1, 128))
        self.scale8 = nn.Param(nn.init.normal(0.02), (1, 1, 1, 128))
        self.bias15 = nn.Param(nn.init.normal(0.02), (1, 1, 1, 128))
        self.conv9 = nn.Conv2d(128, 32, 1, bias=False)
        self.bias16 = nn.Param(nn.init.normal(0.02), (1, 1, 1, 32))
        self.mean9 = nn.Param(nn.init.normal(0.02), (1, 1, 1, 32))
        self.scale9 = nn.Param(nn.init.normal(0.02), (1, 1, 1, 32))
        self.bias17 = nn.Param(nn.init.normal(0.02), (1, 1, 1, 32))
        self.conv10 = nn.Conv2d(32, 32, 3, padding=1, bias=False)
        self.bias18 = nn.Param(nn.init.normal(0.02), (1, 1, 1, 32))
        self.mean10 = nn.Param(nn.init.normal(0.02), (1, 1, 1, 32))
        self.scale10 = nn.Param(nn.init.normal(0.02), (1, 1, 1, 32))
        self.bias19 = nn.Param(nn.init.normal(0.02), (1, 1, 1, 32))
        self.conv11 = nn.Conv2d(32, 128, 1, bias=False)
        self.bias20 = nn.Param(nn.init.normal(0.02), (1, 1, 1, 128))
        self.mean11 = nn.Param(nn.init.normal(0.02), (1, 1, 1, 128))
        self.scale11 = nn.Param(nn.init.normal(0.02), (1, 1, 1, 128))
        self.bias21 = nn.Param(nn.init.normal(0.02), (1, 1, 1, 128))
        self.conv12 = nn.Conv2d(128, 64, 1, stride=2, bias=False)
        self.bias22 = nn.Param(nn.init.normal(0.02), (1, 1, 1, 64))
        self.mean12 = nn.Param(nn.init.normal(0.02), (1, 1, 1, 64))
        self.scale12 = nn.Param(nn.init.normal(0.02), (1, 1, 1, 64))
        self.bias23 = nn.Param(nn.init.normal(0.02), (1, 1, 1, 64))
        self.conv13 = nn.Conv2d(64, 64, 3, padding=1, bias=False)
        self.bias24 = nn.Param(nn.init.normal(0.02), (1, 1, 1, 64))
        self.mean13 = nn.Param(nn.init.normal(0.02), (1, 1, 1, 64))
        self.scale13 = nn.Param(nn.init.normal(0.02), (1, 1, 1, 64))
        self.bias25 = nn.Param(nn.init.normal(0.02), (1, 1, 1, 64))
        self.conv14 = nn.Conv2d(128, 256, 1, stride=2, bias=False)
        self.bias26 = nn.Param(nn.init.normal(0.02), (1, 1, 1, 256))
        self.conv15 = nn.Conv2d(64, 256, 1, bias=False)
        self.bias27 = nn.Param(nn.init.normal(0.02), (1, 1, 1, 256))
        self.mean14 = nn.Param(nn.init.normal(0.02), (1, 1, 1, 256))
        self.scale14 = nn.Param(nn.init.normal(0.02), (1, 1, 1, 256))
        self.bias28 = nn.Param(nn.init.normal(0.02), (1, 1, 1, 256))
        self.mean15 = nn.Param(nn.init.normal(0.02), (1, 1, 1, 256))
        self.scale15 = nn.Param(nn.init.normal(0.02), (1, 1, 1, 256))
        self.conv16 = nn.Conv2d(256, 64, 1, bias=False)
        self.bias29 = nn.Param(nn.init.normal(0.02), (1, 1, 1, 64))
        self.mean16 = nn.Param(nn.init.normal(0.02), (1, 1, 1, 64))
        self.scale16 = nn.Param(nn.init.normal(0.02), (1, 1, 1, 64))
        self.bias30 = nn.Param(nn.init.normal(0.02), (1, 1, 1, 64))
        self.conv17 = nn.Conv2d(64, 64, 3, padding=1, bias=False)
        self.bias31 = nn.Param(nn.init.normal(0.02), (1, 1, 1, 64))
        self.mean17 = nn.Param(nn.init.normal(0.02), (1, 1, 1, 64))
        self.scale17 = nn.Param(nn.init.normal(0.02), (1, 1, 1, 64))
        self.bias32 = nn.Param(nn.init.normal(0.02), (1, 1, 1, 64))
        self.conv18 = nn.Conv2d(64, 256, 1, bias=False)
        self.bias33 = nn.Param(nn.init.normal(0.02), (1, 1, 1, 256))
        self.mean18 = nn.Param(nn.init.normal(0.02), (1, 1, 1, 256))
        self.scale18 = nn.Param(nn.init.normal(0.02), (1, 1, 1, 256))
        self.bias34 = nn.Param(nn.init.normal(0.02), (1, 1, 1, 256))
        self.conv19 = nn.Conv2d(256, 64, 1, bias=False)
        self.bias35 = nn.Param(nn.init.normal(0.02), (1, 1, 1, 64))
        self.mean19 = nn.Param(nn.init.normal(0.02), (1, 1, 1, 64))
        self.scale19 = nn.Param(nn.init.normal(0.02), (1, 1, 1, 64))
        self.bias36 = nn.Param(nn.init.normal(0.02), (1, 1, 1, 64))
        self.conv20 = nn.Conv2d(64, 64, 3, padding=1, bias=False)
        self.bias37 = nn.Param(nn.init.normal(0.02), (1, 1, 1, 64))
        self.mean20 = nn.Param(nn.init.normal(0.02), (1, 1, 1, 64))
        self.scale20 = nn.Param(nn.init.normal(0.02), (1, 1, 1, 64))
        self.bias38 = nn.Param(nn.init.normal(0.02), (1, 1, 1, 64))
        self.conv21 = nn.Conv2d(64, 256, 1, bias=False)
        self.bias39 = nn.Param(nn.init.normal(0.02), (1, 1, 1, 256))
        self.mean21 = nn.Param(nn.init.normal(0.02), (1, 1, 1, 256))
        self.scale21 = nn.Param(nn.init.normal(0.02), (1, 1, 1, 256))
        self.bias40 = nn.Param(nn.init.normal(0.02), (1, 1, 1, 256))
        self.conv22 = nn.Conv2d(256, 64, 1, bias=False)
        self.bias41 = nn.Param(nn.init.normal(0.02), (1, 1, 1, 64))
        self.mean22 = nn.Param(nn.init.normal(0.02), (1, 1, 1, 64))
        self.scale22 = nn.Param(nn.init.normal(0.02), (1, 1, 1, 64))
        self.bias42 = nn.Param(nn.init.normal(0.02), (1, 1, 1, 64))
        self.conv23 = nn.Conv2d(64, 64, 3, padding=1, bias=False)
        self.bias43 = nn.Param(nn.init.normal(0.02), (1, 1, 1, 64))
        self.mean23 = nn.Param(nn.init.normal(0.02), (1, 1, 1, 64))
        self.scale23 = nn.Param(nn.init.normal(0.02), (1, 1, 1, 64))
        self.bias44 = nn.Param(nn.init.normal(0.02), (1, 1, 1, 64))
        self.conv24 = nn.Conv2d(64, 256, 1, bias=False)
        self.bias45 = nn.Param(nn.init.normal(0.02), (1, 1, 1, 256))
        self.mean24 = nn.Param(nn.init.normal(0.02), (1, 1, 1, 256))
        self.scale24 = nn.Param(nn.init.normal(0.02), (1, 1, 1, 256))
        self.bias46 = nn.Param(nn.init.normal(0.02), (1, 1, 1, 256))
        self.conv25 = nn.Conv2d(256, 128, 1, stride=2, bias=False)
        self.bias47 = nn.Param(nn.init.normal(0.02), (1, 1, 1, 128))
        self.mean25 = nn.Param(nn.init.normal(0.02), (1, 1, 1, 128))
        self.scale25 = nn.Param(nn.init.normal(0.02), (1, 1, 1, 128))
        self.bias48 = nn.Param(nn.init.normal(0.02), (1, 1, 1, 128))
        self.conv26 = nn.Conv2d(128, 128, 3, padding=1, bias=False)
        self.bias49 = nn.Param(nn.init.normal(0.02), (1, 1, 1, 128))
        self.mean26 = nn.Param(nn.init.normal(0.02), (1, 1, 1, 128))
        self.scale26 = nn.Param(nn.init.normal(0.02), (1, 1, 1, 128))
        self.bias50 = nn.Param(nn.init.normal(0.02), (1, 1, 1, 128))
        self.conv27 = nn.Conv2d(256, 512, 1, stride=2, bias=False)
        self.bias51 = nn.Param(nn.init.normal(0.02), (1, 1, 1, 512))
        self.conv28 = nn.Conv2d(128, 512, 1, bias=False)
        self.bias52 = nn.Param(nn.init.normal(0.02), (1, 1, 1, 512))
        self.mean27 = nn.Param(nn.init.normal(0.02), (1, 1, 1, 512))
        self.scale27 = nn.Param(nn.init.normal(0.02), (1, 1, 1, 512))
        self.bias53 = nn.Param(nn.init.normal(0.02), (1, 1, 1, 512))
        self.mean28 = nn.Param(nn.init.normal(0.02), (1, 1, 1, 512))
        self.scale28 = nn.Param(nn.init.normal(0.02), (1, 1, 1, 512))
        self.conv29 = nn.Conv2d(512, 128, 1, bias=False)
        self.bias54 = nn.Param(nn.init.normal(0.02), (1, 1, 1, 128))
        self.mean29 = nn.Param(nn.init.normal(0.02), (1, 1, 1, 128))
        self.scale29 = nn.Param(nn.init.normal(0.02), (1, 1, 1, 128))
        self.bias55 = nn.Param(nn.init.normal(0.02), (1, 1, 1, 128))
        self.conv30 = nn.Conv2d(128, 128, 3, padding=1, bias=False)
        self.bias56 = nn.Param(nn.init.normal(0.02), (1, 1, 1, 128))
        self.mean30 = nn.Param(nn.init.normal(0.02), (1, 1, 1, 128))
        self.scale30 = nn.Param(nn.init.normal(0.02), (1, 1, 1, 128))
        self.bias57 = nn.Param(nn.init.normal(0.02), (1, 1, 1, 128))
        self.conv31 = nn.Conv2d(128, 512, 1, bias=False)
        self.bias58 = nn.Param(nn.init.normal(0.02), (1, 1, 1, 512))
        self.mean31 = nn.Param(nn.init.normal(0.02), (1, 1, 1, 512))
        self.scale31 = nn.Param(nn.init.normal(0.02), (1, 1, 1, 512))
        self.bias59 = nn.Param(nn.init.normal(0.02), (1, 1, 1, 512))
        self.conv32 = nn.Conv2d(512, 128, 1, bias=False)
        self.bias60 = nn.Param(nn.init.normal(0.02), (1, 1, 1, 128))
        self.mean32 = nn.Param(nn.init.normal(0.02), (1, 1, 1, 128))
        self.scale32 = nn.Param(nn.init.normal(0.02), (1, 1, 1, 128))
        self.bias61 = nn.Param(nn.init.normal(0.02), (1, 1, 1, 128))
        self.conv33 = nn.Conv2d(128, 128, 3, padding=1, bias=False)
        self.bias62 = nn.Param(nn.init.normal(0.02), (1, 1, 1, 128))
        self.mean33 = nn.Param(nn.init.normal(0.02), (1, 1, 1, 128))
        self.scale33 = nn.Param(nn.init.normal(0.02), (1, 1, 1, 128))
        self.bias63 = nn.Param(nn.init.normal(0.02), (1, 1, 1, 128))
        self.conv34 = nn.Conv2d(128, 512, 1, bias=False)
        self.bias64 = nn.Param(nn.init.normal(0.02), (1, 1, 1, 512))
        self.mean34 = nn.Param(nn.init.normal(0.02), (1, 1, 1, 512))
        self.scale34 = nn.Param(nn.init.normal(0.02), (1, 1, 1, 512))
        self.bias65 = nn.Param(nn.init.normal(0.02), (1, 1, 1, 512))
        self.conv35 = nn.Conv2d(512, 128, 1, bias=False)
        self.bias66 = nn.Param(nn.init.normal(0.02), (1, 1, 1, 128))
        self.mean35 = nn.Param(nn.init.normal(0.02), (1, 1, 1, 128))
        self.scale35 = nn.Param(nn.init.normal(0.02), (1, 1, 1, 128))
        self.bias67 = nn.Param(nn.init.normal(0.02), (1, 1, 1, 128))
        self.conv36 = nn.Conv2d(128, 128, 3, padding=1, bias=False)
        self.bias68 = nn.Param(nn.init.normal(0.02), (1, 1, 1, 128))
        self.mean36 = nn.Param(nn.init.normal(0.02), (1, 1, 1, 128))
        self.scale36 = nn.Param(nn.init.normal(0.02), (1, 1, 1, 128))
        self.bias69 = nn.Param(nn.init.normal(0.02), (1, 1, 1, 128))
        self.conv37 = nn.Conv2d(128, 512, 1, bias=False)
        self.bias70 = nn.Param(nn.init.normal(0.02), (1, 1, 1, 512))
        self.mean37 = nn.Param(nn.init.normal(0.02), (1, 1, 1, 512))
        self.scale37 = nn.Param(nn.init.normal(0.02), (1, 1, 1, 512))
        self.bias71 = nn.Param(nn.init.normal(0.02), (1, 1, 1, 512))
        self.conv38 = nn.Conv2d(512, 128, 1, bias=False)
        self.bias72 = nn.Param(nn.init.normal(0.02), (1, 1, 1, 128))
        self.mean38 = nn.Param(nn.init.normal(0.02), (1, 1, 1, 128))
        self.scale38 = nn.Param(nn.init.normal(0.02), (1, 1, 1, 128))
        self.bias73 = nn.Param(nn.init.normal(0.02), (1, 1, 1, 128))
        self.conv39 = nn.Conv2d(128, 128, 3, padding=1, bias=False)
        self.bias74 = nn.Param(nn.init.normal(0.02), (1, 1, 1, 128))
        self.mean39 = nn.Param(nn.init.normal(0.02), (1, 1, 1, 128))
        self.scale39 = nn.Param(nn.init.normal(0.02), (1, 1, 1, 128))
        self.bias75 = nn.Param(nn.init.normal(0.02), (1, 1, 1, 128))
        self.conv40 = nn.Conv2d(128, 512, 1, bias=False)
        self.bias76 = nn.Param(nn.init.normal(0.02), (1, 1, 1, 512))
        self.mean40 = nn.Param(nn.init.normal(0.02), (1, 1, 1, 512))
        self.scale40 = nn.Param(nn.init.normal(0.02), (1, 1, 1, 512))
        self.bias77 = nn.Param(nn.init.normal(0.02), (1, 1, 1, 512))
        self.conv41 = nn.Conv2d(512, 128, 1, bias=False)
        self.bias78 = nn.Param(nn.init.normal(0.02), (1, 1, 1, 128))
        self.mean41 = nn.Param(nn.init.normal(0.02), (1, 1, 1, 128))
        self.scale41 = nn.Param(nn.init.normal(0.02), (1, 1, 1, 128))
        self.bias79 = nn.Param(nn.init.normal(0.02), (1, 1, 1, 128))
        self.conv42 = nn.Conv2d(128, 128, 3, padding=1, bias=False)
        self.bias80 = nn.Param(nn.init.normal(0.02), (1, 1, 1, 128))
        self.mean42 = nn.Param(nn.init.normal(0.02), (1, 1, 1, 128))
        self.scale42 = nn.Param(nn.init.normal(0.02), (1, 1, 1, 128))
        self.bias81 = nn.Param(nn.init.normal(0.02), (1, 1, 1, 128))
        self.conv43 = nn.Conv2d(128, 512, 1, bias=False)
        self.bias82 = nn.Param(nn.init.normal(0.02), (1, 1, 1, 512))
        self.mean43 = nn.Param(nn.init.normal(0.02), (1, 1, 1, 512))
        self.scale43 = nn.Param(nn.init.normal(0.02), (1, 1, 1, 512))
        self.bias83 = nn.Param(nn.init.normal(0.02), (1, 1, 1, 512))
        self.conv44 = nn.Conv2d(512, 256, 1, stride=2, bias=False)
        self.bias84 = nn.Param(nn.init.normal(0.02), (1, 1, 1, 256))
        self.mean44 = nn.Param(nn.init.normal(0.02), (1, 1, 1, 256))
        self.scale44 = nn.Param(nn.init.normal(0.02), (1, 1, 1, 256))
        self.bias85 = nn.Param(nn.init.normal(0.02), (1, 1, 1, 256))
        self.conv45 = nn.Conv2d(256, 256, 3, padding=1, bias=False)
        self.bias86 = nn.Param(nn.init.normal(0.02), (1, 1, 1, 256))
        self.mean45 = nn.Param(nn.init.normal(0.02), (1, 1, 1, 256))
        self.scale45 = nn.Param(nn.init.normal(0.02), (1, 1, 1, 256))
        self.bias87 = nn.Param(nn.init.normal(0.02), (1, 1, 1, 256))
        self.conv46 = nn.Conv2d(512, 1024, 1, stride=2, bias=False)
        self.bias88 = nn.Param(nn.init.normal(0.02), (1, 1, 1, 1024))
        self.conv47 = nn.Conv2d(256, 1024, 1, bias=False)
        self.bias89 = nn.Param(nn.init.normal(0.02), (1, 1, 1, 1024))
        self.mean46 = nn.Param(nn.init.normal(0.02), (1, 1, 1, 1024))
        self.scale46 = nn.Param(nn.init.normal(0.02), (1, 1, 1, 1024))
        self.bias90 = nn.Param(nn.init.normal(0.02), (1, 1, 1, 1024))
        self.mean47 = nn.Param(nn.init.normal(0.02), (1, 1, 1, 1024))
        self.scale47 = nn.Param(nn.init.normal(0.02), (1, 1, 1, 1024))
        self.conv48 = nn.Conv2d(1024, 256, 1, bias=False)
        self.bias91 = nn.Param(nn.init.normal(0.02), (1, 1, 1, 256))
        self.mean48 = nn.Param(nn.init.normal(0.02), (1, 1, 1, 256))
        self.scale48 = nn.Param(nn.init.normal(0.02), (1, 1, 1, 256))
        self.bias92 = nn.Param(nn.init.normal(0.02), (1, 1, 1, 256))
        self.conv49 = nn.Conv2d(256, 256, 3, padding=1, bias=False)
        self.bias93 = nn.Param(nn.init.normal(0.02), (1, 1, 1, 256))
        self.mean49 = nn.Param(nn.init.normal(0.02), (1, 1, 1, 256))
        self.scale49 = nn.Param(nn.init.normal(0.02), (1, 1, 1, 256))
        self.bias94 = nn.Param(nn.init.normal(0.02), (1, 1, 1, 256))
        self.conv50 = nn.Conv2d(256, 1024, 1, bias=False)
        self.bias95 = nn.Param(nn.init.normal(0.02), (1, 1, 1, 1024))
        self.mean50 = nn.Param(nn.init.normal(0.02), (1, 1, 1, 1024))
        self.scale50 = nn.Param(nn.init.normal(0.02), (1, 1, 1, 1024))
        self.bias96 = nn.Param(nn.init.normal(0.02), (1, 1, 1, 1024))
        self.conv51 = nn.Conv2d(1024, 256, 1, bias=False)
        self.bias97 = nn.Param(nn.init.normal(0.02), (1, 1, 1, 256))
        self.mean51 = nn.Param(nn.init.normal(0.02), (1, 1, 1, 256))
        self.scale51 = nn.Param(nn.init.normal(0.02), (1, 1, 1, 256))
        self.bias98 = nn.Param(nn.init.normal(0.02), (1, 1, 1, 256))
        self.conv52 = nn.Conv2d(256, 256, 3, padding=1, bias=False)
        self.bias99 = nn.Param(nn.init.normal(0.02), (1, 1, 1, 256))
        self.mean52 = nn.Param(nn.init.normal(0.02), (1, 1, 1, 256))
        self.scale52 = nn.Param(nn.init.normal(0.02), (1, 1, 1, 256))
        self.bias100 = nn.Param(nn.init.normal(0.02), (1, 1, 1, 256))
        self.conv53 = nn.Conv2d(256, 1024, 1, bias=False)
        self.bias101 = nn.Param(nn.init.normal(0.02), (1, 1, 1, 1024))
        self.mean53 = nn.Param(nn.init.normal(0.02), (1, 1, 1, 1024))
        self.scale53 = nn.Param(nn.init.normal(0.02), (1, 1, 1, 1024))
        self.bias102 = nn.Param(nn.init.normal(0.02), (1, 1, 1, 1024))
        self.linear = nn.Linear(1024, 2)

    @nn.accepts(input_0="float32[batch, 224, 224, 3]")
    def forward(self, input_0):
        x = ops.pad(input_0, pads=((0, 0), (3, 3), (3, 3), (0, 0)))
        x = x.transpose(0, 3, 1, 2)
        x = (self.conv(x).transpose(0, 2, 3, 1) + self.bias - self.mean) * self.scale
        x = x + self.bias2
        x = ops.relu(x)
        x = x.transpose(0, 3, 1, 2)
        x = ops.pad(x, pads=((0, 0), (0, 0), (0, 1), (0, 1)), mode="edge")
        x = ops.max_pool(x, kernel_size=3, stride=2)
        x = x.transpose(0, 2, 3, 1)
        y = self.conv2(x.transpose(0, 3, 1, 2)).transpose(0, 2, 3, 1) + self.bias3
        y = y - self.mean2
        y = y * self.scale2
        y = self.conv3(ops.relu(y + self.bias4).transpose(0, 3, 1, 2))
        y = (y.transpose(0, 2, 3, 1) + self.bias5 - self.mean3) * self.scale3
        y = y + self.bias6
        y = ops.relu(y)
        x = self.conv4(x.transpose(0, 3, 1, 2)).transpose(0, 2, 3, 1) + self.bias7
        y = self.conv5(y.transpose(0, 3, 1, 2)).transpose(0, 2, 3, 1) + self.bias8
        y = y - self.mean4
        y = y * self.scale4
        y = y + self.bias9
        x = x - self.mean5
        x = x * self.scale5
        x = x + self.bias9
        x = ops.relu(y + x)
        y = self.conv6(x.transpose(0, 3, 1, 2)).transpose(0, 2, 3, 1) + self.bias10
        y = y - self.mean6
        y = y * self.scale6
        y = self.conv7(ops.relu(y + self.bias11).transpose(0, 3, 1, 2))
        y = (y.transpose(0, 2, 3, 1) + self.bias12 - self.mean7) * self.scale7
        y = y + self.bias13
        y = ops.relu(y)
        y = self.conv8(y.transpose(0, 3, 1, 2)).transpose(0, 2, 3, 1) + self.bias14
        y = y - self.mean8
        y = y * self.scale8
        y = y + self.bias15
        x = y + x
        x = ops.relu(x)
        y = self.conv9(x.transpose(0, 3, 1, 2)).transpose(0, 2, 3, 1) + self.bias16
        y = y - self.mean9
        y = y * self.scale9
        y = self.conv10(ops.relu(y + self.bias17).transpose(0, 3, 1, 2))
        y = (y.transpose(0, 2, 3, 1) + self.bias18 - self.mean10) * self.scale10
        y = y + self.bias19
        y = ops.relu(y)
        y = self.conv11(y.transpose(0, 3, 1, 2)).transpose(0, 2, 3, 1) + self.bias20
        y = y - self.mean11
        y = y * self.scale11
        y = y + self.bias21
        x = y + x
        x = ops.relu(x)
        y = self.conv12(x.transpose(0, 3, 1, 2)).transpose(0, 2, 3, 1) + self.bias22
        y = y - self.mean12
        y = y * self.scale12
        y = self.conv13(ops.relu(y + self.bias23).transpose(0, 3, 1, 2))
        y = (y.transpose(0, 2, 3, 1) + self.bias24 - self.mean13) * self.scale13
        y = y + self.bias25
        y = ops.relu(y)
        x = self.conv14(x.transpose(0, 3, 1, 2)).transpose(0, 2, 3, 1) + self.bias26
        y = self.conv15(y.transpose(0, 3, 1, 2)).transpose(0, 2, 3, 1) + self.bias27
        y = y - self.mean14
        y = y * self.scale14
        y = y + self.bias28
        x = x - self.mean15
        x = x * self.scale15
        x = x + self.bias28
        x = ops.relu(y + x)
        y = self.conv16(x.transpose(0, 3, 1, 2)).transpose(0, 2, 3, 1) + self.bias29
        y = y - self.mean16
        y = y * self.scale16
        y = self.conv17(ops.relu(y + self.bias30).transpose(0, 3, 1, 2))
        y = (y.transpose(0, 2, 3, 1) + self.bias31 - self.mean17) * self.scale17
        y = y + self.bias32
        y = ops.relu(y)
        y = self.conv18(y.transpose(0, 3, 1, 2)).transpose(0, 2, 3, 1) + self.bias33
        y = y - self.mean18
        y = y * self.scale18
        y = y + self.bias34
        x = y + x
        x = ops.relu(x)
        y = self.conv19(x.transpose(0, 3, 1, 2)).transpose(0, 2, 3, 1) + self.bias35
        y = y - self.mean19
        y = y * self.scale19
        y = self.conv20(ops.relu(y + self.bias36).transpose(0, 3, 1, 2))
        y = (y.transpose(0, 2, 3, 1) + self.bias37 - self.mean20) * self.scale20
        y = y + self.bias38
        y = ops.relu(y)
        y = self.conv21(y.transpose(0, 3, 1, 2)).transpose(0, 2, 3, 1) + self.bias39
        y = y - self.mean21
        y = y * self.scale21
        y = y + self.bias40
        x = y + x
        x = ops.relu(x)
        y = self.conv22(x.transpose(0, 3, 1, 2)).transpose(0, 2, 3, 1) + self.bias41
        y = y - self.mean22
        y = y * self.scale22
        y = self.conv23(ops.relu(y + self.bias42).transpose(0, 3, 1, 2))
        y = (y.transpose(0, 2, 3, 1) + self.bias43 - self.mean23) * self.scale23
        y = y + self.bias44
        y = ops.relu(y)
        y = self.conv24(y.transpose(0, 3, 1, 2)).transpose(0, 2, 3, 1) + self.bias45
        y = y - self.mean24
        y = y * self.scale24
        y = y + self.bias46
        x = y + x
        x = ops.relu(x)
        y = self.conv25(x.transpose(0, 3, 1, 2)).transpose(0, 2, 3, 1) + self.bias47
        y = y - self.mean25
        y = y * self.scale25
        y = self.conv26(ops.relu(y + self.bias48).transpose(0, 3, 1, 2))
        y = (y.transpose(0, 2, 3, 1) + self.bias49 - self.mean26) * self.scale26
        y = y + self.bias50
        y = ops.relu(y)
        x = self.conv27(x.transpose(0, 3, 1, 2)).transpose(0, 2, 3, 1) + self.bias51
        y = self.conv28(y.transpose(0, 3, 1, 2)).transpose(0, 2, 3, 1) + self.bias52
        y = y - self.mean27
        y = y * self.scale27
        y = y + self.bias53
        x = x - self.mean28
        x = x * self.scale28
        x = x + self.bias53
        x = ops.relu(y + x)
        y = self.conv29(x.transpose(0, 3, 1, 2)).transpose(0, 2, 3, 1) + self.bias54
        y = y - self.mean29
        y = y * self.scale29
        y = self.conv30(ops.relu(y + self.bias55).transpose(0, 3, 1, 2))
        y = (y.transpose(0, 2, 3, 1) + self.bias56 - self.mean30) * self.scale30
        y = y + self.bias57
        y = ops.relu(y)
        y = self.conv31(y.transpose(0, 3, 1, 2)).transpose(0, 2, 3, 1) + self.bias58
        y = y - self.mean31
        y = y * self.scale31
        y = y + self.bias59
        x = y + x
        x = ops.relu(x)
        y = self.conv32(x.transpose(0, 3, 1, 2)).transpose(0, 2, 3, 1) + self.bias60
        y = y - self.mean32
        y = y * self.scale32
        y = self.conv33(ops.relu(y + self.bias61).transpose(0, 3, 1, 2))
        y = (y.transpose(0, 2, 3, 1) + self.bias62 - self.mean33) * self.scale33
        y = y + self.bias63
        y = ops.relu(y)
        y = self.conv34(y.transpose(0, 3, 1, 2)).transpose(0, 2, 3, 1) + self.bias64
        y = y - self.mean34
        y = y * self.scale34
        y = y + self.bias65
        x = y + x
        x = ops.relu(x)
        y = self.conv35(x.transpose(0, 3, 1, 2)).transpose(0, 2, 3, 1) + self.bias66
        y = y - self.mean35
        y = y * self.scale35
        y = self.conv36(ops.relu(y + self.bias67).transpose(0, 3, 1, 2))
        y = (y.transpose(0, 2, 3, 1) + self.bias68 - self.mean36) * self.scale36
        y = y + self.bias69
        y = ops.relu(y)
        y = self.conv37(y.transpose(0, 3, 1, 2)).transpose(0, 2, 3, 1) + self.bias70
        y = y - self.mean37
        y = y * self.scale37
        y = y + self.bias71
        x = y + x
        x = ops.relu(x)
        y = self.conv38(x.transpose(0, 3, 1, 2)).transpose(0, 2, 3, 1) + self.bias72
        y = y - self.mean38
        y = y * self.scale38
        y = self.conv39(ops.relu(y + self.bias73).transpose(0, 3, 1, 2))
        y = (y.transpose(0, 2, 3, 1) + self.bias74 - self.mean39) * self.scale39
        y = y + self.bias75
        y = ops.relu(y)
        y = self.conv40(y.transpose(0, 3, 1, 2)).transpose(0, 2, 3, 1) + self.bias76
        y = y - self.mean40
        y = y * self.scale40
        y = y + self.bias77
        x = y + x
        x = ops.relu(x)
        y = self.conv41(x.transpose(0, 3, 1, 2)).transpose(0, 2, 3, 1) + self.bias78
        y = y - self.mean41
        y = y * self.scale41
        y = self.conv42(ops.relu(y + self.bias79).transpose(0, 3, 1, 2))
        y = (y.transpose(0, 2, 3, 1) + self.bias80 - self.mean42) * self.scale42
        y = y + self.bias81
        y = ops.relu(y)
        y = self.conv43(y.transpose(0, 3, 1, 2)).transpose(0, 2, 3, 1) + self.bias82
        y = y - self.mean43
        y = y * self.scale43
        y = y + self.bias83
        x = y + x
        x = ops.relu(x)
        y = self.conv44(x.transpose(0, 3, 1, 2)).transpose(0, 2, 3, 1) + self.bias84
        y = y - self.mean44
        y = y * self.scale44
        y = self.conv45(ops.relu(y + self.bias85).transpose(0, 3, 1, 2))
        y = (y.transpose(0, 2, 3, 1) + self.bias86 - self.mean45) * self.scale45
        y = y + self.bias87
        y = ops.relu(y)
        x = self.conv46(x.transpose(0, 3, 1, 2)).transpose(0, 2, 3, 1) + self.bias88
        y = self.conv47(y.transpose(0, 3, 1, 2)).transpose(0, 2, 3, 1) + self.bias89
        y = y - self.mean46
        y = y * self.scale46
        y = y + self.bias90
        x = x - self.mean47
        x = x * self.scale47
        x = x + self.bias90
        x = ops.relu(y + x)
        y = self.conv48(x.transpose(0, 3, 1, 2)).transpose(0, 2, 3, 1) + self.bias91
        y = y - self.mean48
        y = y * self.scale48
        y = self.conv49(ops.relu(y + self.bias92).transpose(0, 3, 1, 2))
        y = (y.transpose(0, 2, 3, 1) + self.bias93 - self.mean49) * self.scale49
        y = y + self.bias94
        y = ops.relu(y)
        y = self.conv50(y.transpose(0, 3, 1, 2)).transpose(0, 2, 3, 1) + self.bias95
        y = y - self.mean50
        y = y * self.scale50
        y = y + self.bias96
        x = y + x
        x = ops.relu(x)
        y = self.conv51(x.transpose(0, 3, 1, 2)).transpose(0, 2, 3, 1) + self.bias97
        y = y - self.mean51
        y = y * self.scale51
        y = self.conv52(ops.relu(y + self.bias98).transpose(0, 3, 1, 2))
        y = (y.transpose(0, 2, 3, 1) + self.bias99 - self.mean52) * self.scale52
        y = y + self.bias100
        y = ops.relu(y)
        y = self.conv53(y.transpose(0, 3, 1, 2)).transpose(0, 2, 3, 1) + self.bias101
        y = y - self.mean53
        y = y * self.scale53
        y = y + self.bias102
        x = y + x
        x = self.linear(ops.relu(x).mean((1, 2)))
        return ops.softmax(x)
